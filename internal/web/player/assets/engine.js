// What plays: hls.js, set so that it leaves nothing out, never waits for nothing, and keeps near the live edge.
import { catchUp } from './catchup.js';

// engine is an hls.js with some settings of the page's. It has no source yet.
export function engine(Hls, settings) {
  const hls = new Hls({
    lowLatencyMode: true,
    maxLiveSyncPlaybackRate: 1, // until it is known who sees to it
    capLevelToPlayerSize: true,
    enableWorker: false, // else it leaves out a segment's last part where the worker is late
    bufferController: oneByOne(Hls.DefaultConfig.bufferController),
    streamController: behindGap(atEdge(mediaOnly(Hls.DefaultConfig.streamController))),
    audioStreamController: mediaOnly(Hls.DefaultConfig.audioStreamController),
    ...settings,
  });
  readable(hls, Hls.Events);
  catchUp(hls, Hls.Events);
  return hls;
}

// readable keeps the player as far behind live as the text is that it shows, which has a PART-HOLD-BACK of its own, and
// without text at that of the picture.
function readable(hls, { SUBTITLE_TRACK_LOADED, SUBTITLE_TRACK_SWITCH }) {
  let set = 0; // target latency that was set here, in seconds; 0: none
  const keep = (textHoldBack) => {
    const holdBack = hls.latestLevelDetails?.partHoldBack;
    const target = Math.max(holdBack, textHoldBack);
    if (!holdBack || target === (set || holdBack)) return;
    hls.targetLatency = set = target;
    if (hls.latency > 0 && hls.latency < target) hls.media.currentTime -= target - hls.latency;
  };
  hls.on(SUBTITLE_TRACK_LOADED, (_, { id, details }) => {
    if (id === hls.subtitleTrack) keep(hls.subtitleDisplay ? details.partHoldBack : 0);
  });
  hls.on(SUBTITLE_TRACK_SWITCH, (_, { id }) => { if (id < 0) keep(0); });
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

const isGap = (frag) => frag.tagList.some(([tag]) => tag === 'GAP');

// mediaOnly mends another one: for a gap, which has no data, the init segment is loaded. When the next segment's turn
// comes before that has ended, it is loaded once more and the first request is aborted, the end of which aborts the load
// of the segment as well. Where that is the player's first one, no other is begun: it waits forever. A live stream that
// has just begun lists gaps in front.
const mediaOnly = (Controller) => class extends Controller {
  loadInitSegmentIfNeeded(frag) {
    return isGap(frag) ? undefined : super.loadInitSegmentIfNeeded(frag);
  }
};

// behindGap mends a third one: a player that is to begin in a gap waits there until the playlist has it no longer.
const behindGap = (Controller) => class extends Controller {
  seekToStartPos() {
    const at = this.startPosition;
    const gap = this.getLevelDetails()?.fragments.find((frag) => frag.start <= at && at < frag.end);
    if (gap && isGap(gap) && this.media?.buffered.length) this.startPosition = Math.max(at, this.media.buffered.start(0));
    super.seekToStartPos();
  }
};

// atEdge has a player of a low-latency stream begin as far behind live as it is to be when it has something to show, not
// when it had the playlist: half a second goes by between the two. Over a slow connection it begins where it was to.
const atEdge = (Controller) => class extends Controller {
  seekToStartPos() {
    const details = this.getLevelDetails();
    const first = !this.joined && this.hls.config.startPosition < 0;
    const by = this.hls.liveSyncPosition - this.startPosition;
    if (first && details?.live && details.partTarget && this.startPosition > 0 && by > 0 && by < details.partHoldBack) {
      this.startPosition += by;
    }
    this.joined = true;
    super.seekToStartPos();
  }
};
