// What plays: hls.js, set so that it leaves nothing out.

// engine is an hls.js with some settings of the page's. It has no source yet.
export function engine(Hls, settings) {
  return new Hls({
    lowLatencyMode: true,
    maxLiveSyncPlaybackRate: 1.3, // catches up to the live edge after a stall
    capLevelToPlayerSize: true,
    enableWorker: false, // else it leaves out a segment's last part where the worker is late: docs/api.md
    bufferController: oneByOne(Hls.DefaultConfig.bufferController),
    ...settings,
  });
}

// oneByOne mends a defect of hls.js 1.7.4. A blocking operation that has come to its turn in one queue has it step the
// queues of all SourceBuffers, also one whose append has ended and whose updateend is yet to come. The next append
// begins there, that updateend is taken for its own, and the one behind it fails, as the SourceBuffer is updating. That
// part is never loaded again: its sound or its pictures are missing.
const oneByOne = (Buffers) => class extends Buffers {
  stepOperationQueue(types) {
    super.stepOperationQueue(types.filter((type) => this.currentOp(type)?.label === 'async-blocker'));
  }
};
