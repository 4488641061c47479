// Search in pages that were opened from the disk. Browsers refuse workers for file: addresses, so the
// theme's search worker runs in an iframe instead. The theme looks for this class by its name.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      const worker = new URL(url, location.href);
      const load = (address) =>
        new Promise((resolve) => {
          const script = this.inside.document.createElement("script");
          script.src = new URL(address, worker);
          script.onload = resolve;
          this.inside.document.body.append(script);
        });
      this.inside.importScripts = (...addresses) =>
        addresses.reduce((done, address) => done.then(() => load(address)), Promise.resolve());
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.loaded = load(worker);
    }

    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
