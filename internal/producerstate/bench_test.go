package producerstate

import "testing"

// One idempotent append: duplicate check, sequence check, update.
func BenchmarkAppend(b *testing.B) {
	m := newTest(b)
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		batch := data(i%64, 0, int32(i/64), 1, i)
		if _, ok := m.Duplicate(batch); ok {
			b.Fatal("duplicate")
		}
		u := m.Begin(Client)
		must(b, u.Add(batch))
		m.Apply(u)
		m.SetEndOffset(i + 1)
	}
}
