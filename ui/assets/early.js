// What must stand before Gradio's own code reads it: the order of what is asked, and how often its clock ticks.
(() => {
  // What was asked first must reach the server first: it answers in the order in which it was asked, and of two
  // requests on two connections the later may come first on a loaded machine. One that hangs holds up none for long.
  const PATIENCE = 5000; // milliseconds
  const send = window.fetch.bind(window);
  let before = Promise.resolve();
  window.fetch = (input, init) => {
    const url = typeof input === "string" ? input : input.url ?? String(input);
    if (!/\/queue\/join(?:\?|$)/.test(url)) return send(input, init);
    const waited = new Promise((resolve) => { setTimeout(resolve, PATIENCE); });
    const asked = Promise.race([before, waited]).then(() => send(input, init));
    before = asked.then(() => undefined, () => undefined);
    return asked;
  };

  // Gradio's clock of a waiting event ticks sixty times a second, and for good where its component was taken away while
  // it waited: each tick costs a frame of the whole page. Nothing here shows that clock. It is known by what it computes.
  const TICK = 1000; // milliseconds
  const frame = window.requestAnimationFrame.bind(window);
  const isClock = (callback) => /performance\.now\(\)\s*-/.test(Function.prototype.toString.call(callback));
  window.requestAnimationFrame = (callback) =>
    isClock(callback) ? setTimeout(() => callback(performance.now()), TICK) : frame(callback);
})();
