module millrace/tools/peer

go 1.26.0

// Only its sources are wanted: it is built as a main module of its own, with its own go.sum, because two files that it embeds are not
// in the module and have to be put beside the others (test/bench/peers/mediamtx.sh).
require github.com/bluenviron/mediamtx v1.21.0
