// This program writes what another decoder makes of the files of main.go: for each channel its captions.
import {readFileSync, writeFileSync} from 'node:fs'
import captions from 'mux.js/lib/m2ts/caption-stream.js'

const stream = new captions.CaptionStream({parse708captions: false})
const out = {}
stream.on('data', c => {
  (out[c.stream] ||= []).push({
    start: c.startPts / 90000, end: c.endPts / 90000, row: c.content[0].line, lines: c.content.map(x => x.text.replaceAll(/<[^>]*>/g, '').trim()),
  })
})
const pairs = []
for (const field of [1, 2]) {
  for (const line of readFileSync(`modes.field${field}.scc`, 'utf8').split('\n')) {
    const [time, ...codes] = line.trim().split(/\s+/)
    if (!codes.length || !/^\d\d:/.test(time)) continue
    const [h, m, s, f] = time.split(':').map(Number)
    codes.forEach((code, i) => pairs.push({frame: ((h * 60 + m) * 60 + s) * 30 + f + i, field, code: parseInt(code, 16)}))
  }
}
pairs.sort((a, b) => a.frame - b.frame || a.field - b.field)
for (const p of pairs) stream.dispatchCea608Packet({type: p.field - 1, ccData: p.code, pts: p.frame * 3003})
writeFileSync('modes.json', JSON.stringify(out, null, 1) + '\n')
