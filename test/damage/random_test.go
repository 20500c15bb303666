package damage

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tidemark/internal/checkpoint"
	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/test/proc"
	"tidemark/vfs"
)

// TestRandomDamage spoils an undamaged folder in one or two of the ways in which the golden folders were spoiled, in
// places of its own choice, and judges Tidemark as the table does.
//
// TIDEMARK_DAMAGE_ROUNDS sets how often (30 when it is not set, 10 in a short run), TIDEMARK_DAMAGE_SEED where the
// seeds begin: another number there is another set of places.
func TestRandomDamage(t *testing.T) {
	usual := uint64(30)
	if testing.Short() {
		usual = 10
	}
	rounds := proc.Number(t, "TIDEMARK_DAMAGE_ROUNDS", usual)
	seed := proc.Number(t, "TIDEMARK_DAMAGE_SEED", 1)
	source := golden.Load(t, "10-crash-intact")
	data := template(t, source)
	whole := wholeLog(t, source)
	for i := range rounds {
		s := &spoiler{t: t, rng: rand.New(rand.NewPCG(seed+i, 7)), whole: whole}
		name := fmt.Sprintf("seed %d", seed+i)
		t.Run(name, func(t *testing.T) {
			s.t = t
			clean := golden.Load(t, [2]string{"10-crash-intact", "10-clean-intact"}[s.rng.IntN(2)])
			dir := s.place(data, clean)
			tr := findTruth(t, filepath.Join(dir, topic+"-0"), whole)
			got := tidemarkVerdict(t, dir, tr)
			if !got.yes() {
				t.Errorf("%s: %q", strings.Join(s.done, "; "), got.cells())
			}
		})
	}
}

// spoiler damages one folder.
type spoiler struct {
	t     *testing.T
	rng   *rand.Rand
	whole []batch
	dir   string
	done  []string // what was done
}

// place makes a data directory with the case's folder in it, and spoils it.
func (s *spoiler) place(template string, c golden.Case) string {
	dir := place(s.t, template, c)
	s.dir = filepath.Join(dir, topic+"-0")
	s.done = append(s.done, c.Name)
	bases := s.bases()
	if !*c.Info.CleanShutdown {
		point := []int64{0, bases[len(bases)-1], bases[s.rng.IntN(len(bases))], 166}[s.rng.IntN(4)]
		points := checkpoint.Offsets{checkpoint.TopicPartition{Topic: topic}: point}
		must(s.t, checkpoint.WriteOffsets(vfs.OS(), filepath.Join(dir, checkpoint.RecoveryPointFile), points))
		s.note("recovery point %d", point)
	}
	for range 1 + s.rng.IntN(2) {
		s.spoil()
	}
	return dir
}

func (s *spoiler) note(format string, args ...any) {
	s.done = append(s.done, fmt.Sprintf(format, args...))
}

// bases are the base offsets of the logs that are there.
func (s *spoiler) bases() []int64 {
	var out []int64
	for _, name := range logNames(s.t, s.dir) {
		base, err := strconv.ParseInt(strings.TrimSuffix(name, ".log"), 10, 64)
		must(s.t, err)
		out = append(out, base)
	}
	return out
}

// spoil does one damage.
func (s *spoiler) spoil() {
	bases := s.bases()
	base := bases[s.rng.IntN(len(bases))]
	last := bases[len(bases)-1]
	index := logName(base)[:20] + []string{".index", ".timeindex", ".txnindex"}[s.rng.IntN(3)]
	switch s.rng.IntN(18) {
	case 0, 1:
		s.flip(base)
	case 2:
		s.length(base)
	case 3:
		s.edit(logName(last), "random bytes behind",
			func(b []byte) []byte { return append(b, s.random(1+s.rng.IntN(300))...) })
	case 4:
		s.edit(logName(last), "a header with a negative size behind", func(b []byte) []byte {
			return append(append(b, s.random(8)...), append([]byte{0xff, 0xff}, s.random(60)...)...)
		})
	case 5:
		s.edit(logName(last), "zeros behind", func(b []byte) []byte { return append(b, make([]byte, 1+s.rng.IntN(500))...) })
	case 6:
		s.edit(logName(last), "torn", func(b []byte) []byte { return b[:max(0, len(b)-1-s.rng.IntN(100))] })
	case 7, 8:
		s.remove(index)
	case 9:
		s.edit(index, "emptied", func([]byte) []byte { return nil })
	case 10:
		s.edit(index, "zeroed", func(b []byte) []byte { return make([]byte, len(b)) })
	case 11:
		s.edit(index, "random bytes behind", func(b []byte) []byte { return append(b, s.random(1+s.rng.IntN(40))...) })
	case 12:
		s.edit(index, "one byte changed", s.change)
	case 13:
		s.edit(index, "cut", func(b []byte) []byte { return b[:s.rng.IntN(len(b)+1)] })
	case 14:
		s.snapshots()
	case 15:
		s.files(base)
	case 16:
		s.missing(base)
	case 17:
		s.insert(base)
	}
}

// edit rewrites a file, when it is there.
func (s *spoiler) edit(name, what string, change func([]byte) []byte) {
	path := filepath.Join(s.dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	s.note("%s: %s", name, what)
	must(s.t, os.WriteFile(path, change(readFile(s.t, path)), 0o644))
	must(s.t, os.Chtimes(path, info.ModTime(), info.ModTime()))
}

func (s *spoiler) change(b []byte) []byte {
	if len(b) > 0 {
		b[s.rng.IntN(len(b))] ^= byte(1 + s.rng.IntN(255))
	}
	return b
}

func (s *spoiler) random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.rng.IntN(256))
	}
	return b
}

func (s *spoiler) remove(name string) {
	if err := os.Remove(filepath.Join(s.dir, name)); err == nil {
		s.note("%s removed", name)
	}
}

// dataBatch picks a batch of a log that is no marker: its position and size.
func (s *spoiler) dataBatch(log []byte) (pos, size int) {
	var found [][2]int
	for at := 0; at < len(log); {
		h, entry, _, err := record.NextEntry(log[at:])
		if err != nil {
			break
		}
		if !h.IsControl() {
			found = append(found, [2]int{at, len(entry)})
		}
		at += len(entry)
	}
	if len(found) == 0 {
		return 0, 0
	}
	pick := found[s.rng.IntN(len(found))]
	return pick[0], pick[1]
}

// flip flips a bit behind the size field of a batch.
func (s *spoiler) flip(base int64) {
	s.edit(logName(base), "a bit flipped", func(b []byte) []byte {
		if pos, size := s.dataBatch(b); size > 0 {
			at := pos + 16 + s.rng.IntN(size-16)
			b[at] ^= 1 << s.rng.IntN(8)
			s.note("at %d of the batch at %d", at-pos, pos)
		}
		return b
	})
}

// length spoils the size field of a batch.
func (s *spoiler) length(base int64) {
	s.edit(logName(base), "a size field changed", func(b []byte) []byte {
		if pos, size := s.dataBatch(b); size > 0 {
			b[pos+8+s.rng.IntN(4)] ^= 1 << s.rng.IntN(8)
			s.note("of the batch at %d", pos)
		}
		return b
	})
}

// missing takes bytes out of a batch.
func (s *spoiler) missing(base int64) {
	s.edit(logName(base), "bytes missing", func(b []byte) []byte {
		if pos, size := s.dataBatch(b); size > 0 {
			n := 1 + s.rng.IntN(min(60, size-17))
			at := pos + 16 + s.rng.IntN(size-16-n)
			s.note("%d at %d of the batch at %d", n, at-pos, pos)
			return append(b[:at:at], b[at+n:]...)
		}
		return b
	})
}

// insert puts random bytes into a batch.
func (s *spoiler) insert(base int64) {
	s.edit(logName(base), "bytes put in", func(b []byte) []byte {
		if pos, size := s.dataBatch(b); size > 0 {
			at := pos + 16 + s.rng.IntN(size-16)
			s.note("at %d of the batch at %d", at-pos, pos)
			return append(append(b[:at:at], s.random(1+s.rng.IntN(60))...), b[at:]...)
		}
		return b
	})
}

// snapshots spoils producer snapshots.
func (s *spoiler) snapshots() {
	names, err := filepath.Glob(filepath.Join(s.dir, "*.snapshot"))
	must(s.t, err)
	if len(names) == 0 {
		return
	}
	name := filepath.Base(names[s.rng.IntN(len(names))])
	switch s.rng.IntN(3) {
	case 0:
		s.edit(name, "one byte changed", s.change)
	case 1:
		s.edit(name, "cut", func(b []byte) []byte { return b[:s.rng.IntN(len(b))] })
	case 2:
		s.remove(name)
	}
}

// files adds or removes whole files.
func (s *spoiler) files(base int64) {
	name := logName(base)
	switch s.rng.IntN(5) {
	case 0:
		s.remove(checkpoint.LeaderEpochFile)
	case 1:
		must(s.t, os.WriteFile(filepath.Join(s.dir, logName(999999)[:20]+".index"), s.random(24), 0o644))
		s.note("an orphan")
	case 2:
		must(s.t, os.WriteFile(filepath.Join(s.dir, name+".cleaned"), s.random(500), 0o644))
		s.note("%s.cleaned", name)
	case 3:
		must(s.t, os.WriteFile(filepath.Join(s.dir, name+".deleted"), s.random(500), 0o644))
		s.note("%s.deleted", name)
	case 4:
		must(s.t, os.WriteFile(filepath.Join(s.dir, "notes.txt"), s.random(50), 0o644))
		s.note("notes.txt")
	}
}
