package cenc

import (
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
)

// Init is the init segment of encrypted media: its sample entry says how, and it ends with protection system specific
// headers (pssh boxes).
func (t *Track) Init(headers ...[]byte) ([]byte, error) {
	typ := "enca"
	if t.video {
		typ = "encv"
	}
	sinf := bmff.Make("sinf",
		bmff.Make("frma", t.entry.Type[:]),
		bmff.Full("schm", 0, 0, []byte(t.scheme), bmff.U32(1<<16)),
		bmff.Make("schi", t.tenc()))
	out, err := cmaf.WithEntry(t.init, bmff.Make(typ, t.entry.Raw[8:], sinf))
	if err != nil {
		return nil, err
	}
	return cmaf.WithHeaders(out, headers...)
}

// tenc is the track encryption box, section 8.2.
func (t *Track) tenc() []byte {
	version := uint8(1)
	if t.scheme == CTR {
		version = 0
	}
	return bmff.Full("tenc", version, 0, t.parameters())
}

// parameters are what tenc says in both versions, and a sample group entry seig: pattern, protection, size of IVs, key
// ID, constant IV.
func (t *Track) parameters() []byte {
	if t.scheme == CTR {
		return append([]byte{0, 0, 1, ivSize}, t.key.ID[:]...)
	}
	pattern := byte(0)
	if t.video {
		pattern = cryptBlocks<<4 | skipBlocks
	}
	b := append([]byte{0, pattern, 1, 0}, t.key.ID[:]...)
	return append(append(b, byte(len(t.key.IV))), t.key.IV[:]...)
}

// groups puts all samples of a fragment into one group with the track's key, ISO 14496-12 sections 8.9.2 and 8.9.3.
func (t *Track) groups(samples int) []byte {
	const inFragment = 1 << 16
	entry := t.parameters()
	description := bmff.Full("sgpd", 1, 0, []byte("seig"), bmff.U32(uint32(len(entry)), 1), entry)
	return append(bmff.Full("sbgp", 0, 0, []byte("seig"), bmff.U32(1, uint32(samples), inFragment|1)), description...)
}

// Header is a protection system specific header box (pssh, section 8.1) of version 1: the system's ID, the key IDs that
// it is about and the system's own data.
func Header(system [16]byte, keys [][16]byte, data []byte) []byte {
	ids := make([]byte, 0, 16*len(keys))
	for _, k := range keys {
		ids = append(ids, k[:]...)
	}
	return bmff.Full("pssh", 1, 0, system[:], bmff.U32(uint32(len(keys))), ids, bmff.U32(uint32(len(data))), data)
}

// PlainHeader is a header of version 0, which names no key IDs: some systems read no other.
func PlainHeader(system [16]byte, data []byte) []byte {
	return bmff.Full("pssh", 0, 0, system[:], bmff.U32(uint32(len(data))), data)
}
