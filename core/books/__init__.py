"""Books: long texts kept as the states of their segments, one window each, and asked one segment at a time.

texts.py     files and folders -> text with the digest of its file
split.py     a text -> pieces of at most so many tokens, at borders that an edit elsewhere does not move
prompt.py    how a piece stands before the model, and how a question follows it
deposit.py   a piece -> prefilled, captured, certified, published; and rebuilt when its bytes were dropped
record.py    a book's rows in order, and the digest over them
ingest.py    a source -> a book's rows, resumable
curate.py    accept, revoke, pack, drop, describe
ask.py       route, graft, answer, reconcile
desk.py      all of it as use cases: what the page and the command line call
"""
