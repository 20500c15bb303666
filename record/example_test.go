package record_test

import (
	"bytes"
	"fmt"

	"tidemark/record"
)

func batch() []byte {
	o := record.DefaultBuilderOptions()
	o.BaseOffset, o.Codec = 100, record.Zstd
	b := record.NewBuilder(o)
	for i, value := range []string{"low", "high", "low"} {
		if err := b.Append(int64(1000*i), []byte("tide"), []byte(value), nil); err != nil {
			fmt.Println(err)
		}
	}
	return b.Bytes()
}

func ExampleIterator() {
	it, err := record.NewIterator(batch(), record.IterOptions{})
	for err == nil && it.Next() {
		r := it.Record()
		fmt.Printf("%d at %d: %s = %s\n", r.Offset, r.Timestamp, r.Key, r.Value)
	}
	if err == nil {
		err = it.Err()
	}
	fmt.Println(err)
	// Output:
	// 100 at 0: tide = low
	// 101 at 1000: tide = high
	// 102 at 2000: tide = low
	// <nil>
}

func ExampleScanner() {
	file := append(batch(), "a torn tail"...)
	s := record.NewScanner(bytes.NewReader(file), 0, int64(len(file)))
	for s.Next() {
		h := s.Header()
		fmt.Printf("offsets %d to %d, %d records, %v\n", h.BaseOffset, h.LastOffset, h.Count, h.Codec())
	}
	fmt.Println(s.Err() != nil, int64(len(file))-s.End())
	// Output:
	// offsets 100 to 102, 3 records, zstd
	// true 11
}

func ExampleBatch() {
	b := record.Batch(batch())
	b.SetBaseOffset(5000) // as a leader does at append; outside the checksum
	b.SetLeaderEpoch(7)
	fmt.Println(b.BaseOffset(), b.LastOffset(), b.LeaderEpoch(), b.MaxTimestamp(), b.ValidCRC())
	// Output: 5000 5002 7 2000 true
}

func ExampleBuilder() {
	b := record.NewBuilder(record.DefaultBuilderOptions())
	if err := b.Append(1700000000000, []byte("k1"), []byte("v1"), nil); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%d records, %d bytes\n", b.Count(), len(b.Bytes()))
	// Output: 1 records, 72 bytes
}

func ExampleEndTxnMarker() {
	o := record.DefaultBuilderOptions()
	o.ProducerID, o.ProducerEpoch = 4000, 0
	b, err := record.EndTxnMarker(o, 1700000000000, record.EndTxn{Commit: true})
	if err != nil {
		fmt.Println(err)
	}
	it, err := record.NewIterator(b, record.IterOptions{})
	for err == nil && it.Next() {
		fmt.Println(record.ParseControl(it.Record().Key, it.Record().Value))
	}
	// Output: COMMIT {true 0} <nil>
}

func ExampleDownConvert() {
	o := record.DefaultBuilderOptions()
	b := record.NewBuilder(o)
	if err := b.Append(1700000000000, []byte("k"), []byte("v"), nil); err != nil {
		fmt.Println(err)
	}
	messages, err := record.DownConvert(nil, b.Bytes(), 1, 0, record.IterOptions{})
	if err != nil {
		fmt.Println(err)
	}
	h, err := record.ParseHeader(messages)
	fmt.Println(h.Magic, h.SizeBytes, err)
	// Output: 1 36 <nil>
}
