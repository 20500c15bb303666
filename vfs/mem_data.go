package vfs

import "maps"

const (
	memPage = 4096
	// memSector is how much of a file is kept or lost as one at a crash.
	memSector = 512
)

// memData is the bytes of a file in pages; a page that is not there is zeros, so
// that a preallocated file costs nothing. Copies share pages until one writes.
type memData struct {
	size  int64
	pages map[int64]*[memPage]byte
	owned map[int64]bool // pages that no copy shares
}

func newMemData() memData {
	return memData{pages: map[int64]*[memPage]byte{}, owned: map[int64]bool{}}
}

// share returns a copy of the present bytes.
func (d *memData) share() memData {
	clear(d.owned)
	return memData{size: d.size, pages: maps.Clone(d.pages), owned: map[int64]bool{}}
}

// own returns a page that may be written to.
func (d *memData) own(i int64) *[memPage]byte {
	if !d.owned[i] {
		p := new([memPage]byte)
		if old := d.pages[i]; old != nil {
			*p = *old
		}
		d.pages[i], d.owned[i] = p, true
	}
	return d.pages[i]
}

func (d *memData) readAt(p []byte, pos int64) int {
	if pos >= d.size {
		return 0
	}
	p = p[:min(int64(len(p)), d.size-pos)]
	for done := 0; done < len(p); {
		at := pos + int64(done)
		n := min(len(p)-done, int(memPage-at%memPage))
		if page := d.pages[at/memPage]; page != nil {
			copy(p[done:done+n], page[at%memPage:])
		} else {
			clear(p[done : done+n])
		}
		done += n
	}
	return len(p)
}

func (d *memData) writeAt(p []byte, pos int64) {
	d.size = max(d.size, pos+int64(len(p)))
	for len(p) > 0 {
		n := copy(d.own(pos / memPage)[pos%memPage:], p)
		p, pos = p[n:], pos+int64(n)
	}
}

func (d *memData) resize(size int64) {
	if size < d.size {
		for i := range d.pages {
			if i*memPage >= size {
				delete(d.pages, i)
				delete(d.owned, i)
			}
		}
		if last := size / memPage; d.pages[last] != nil {
			clear(d.own(last)[size%memPage:])
		}
	}
	d.size = size
}

// crash returns synced with each sector in which d differs taken over or not,
// and the size of either.
func (d *memData) crash(synced *memData, kept func() bool) memData {
	out := synced.share()
	if d.size != synced.size && kept() {
		out.resize(d.size)
	}
	pages := (max(d.size, synced.size) + memPage - 1) / memPage
	for i := range pages {
		if i*memPage >= out.size {
			break
		}
		now, old := d.pages[i], synced.pages[i]
		if now != old {
			out.crashPage(i, now, kept)
		}
	}
	return out
}

var zeroPage [memPage]byte

func (d *memData) crashPage(i int64, now *[memPage]byte, kept func() bool) {
	if now == nil {
		now = &zeroPage
	}
	for at := int64(0); at < memPage && i*memPage+at < d.size; at += memSector {
		end := min(at+memSector, d.size-i*memPage)
		old := &zeroPage
		if p := d.pages[i]; p != nil {
			old = p
		}
		if string(old[at:end]) != string(now[at:end]) && kept() {
			copy(d.own(i)[at:end], now[at:end])
		}
	}
}
