package record

import (
	"tidemark/internal/wire"
)

// IterOptions say how an [Iterator] decodes.
type IterOptions struct {
	// SkipKV leaves out keys, values and headers. All of a record is checked
	// all the same.
	SkipKV bool
	// MaxBytes bounds what one entry may decompress to, in bytes;
	// DefaultMaxBytes if 0. With gzip, snappy and lz4 a batch takes only the
	// memory of its largest record at a time; zstd and wrappers of old magics
	// are decompressed as a whole.
	MaxBytes int64
	// Memory, when not nil, is where the memory for decompression is acquired,
	// by an estimate, before it begins, and released when the iterator ends.
	Memory Memory
}

// Iterator decodes the records of one entry of any magic and codec, in order:
//
//	it, err := record.NewIterator(entry, record.IterOptions{})
//	for err == nil && it.Next() {
//		use(it.Record())
//	}
//
// The zero Iterator is ready for [Iterator.Reset]. An iterator that is not
// driven to its end must be closed, or its buffers are not reused.
type Iterator struct {
	opt    IterOptions
	header Header
	rec    Record
	err    error
	body   window

	left int32  // records of a magic-2 batch still to come
	old  oldSet // state for magic 0 and 1
}

// NewIterator starts on the records of the entry at the start of the slice;
// what follows it is ignored. It does not verify the checksum ([ValidCRC]).
// Errors: ErrShort, *CorruptError, *InvalidRecordError, *CodecError.
func NewIterator(entry []byte, o IterOptions) (*Iterator, error) {
	it := new(Iterator)
	if err := it.Reset(entry, o); err != nil {
		return nil, err
	}
	return it, nil
}

// Reset starts on another entry and keeps the iterator's memory. Errors are
// those of NewIterator.
func (it *Iterator) Reset(entry []byte, o IterOptions) error {
	it.Close()
	it.opt, it.err, it.left = o, nil, 0
	h, entry, _, err := NextEntry(entry)
	if err == nil {
		it.header = h
		if h.Magic < 2 {
			err = it.startOld(entry)
		} else {
			err = it.startBatch(entry)
		}
	}
	if err != nil {
		it.fail(err)
	}
	return err
}

func (it *Iterator) startBatch(entry []byte) error {
	if err := it.count(); err != nil || it.left == 0 {
		return err // what may follow the header of an empty batch is never read
	}
	return it.body.open(it.header.Codec(), 2, entry[HeaderSize:], it.opt)
}

// count takes the number of records from the header of a magic-2 batch.
func (it *Iterator) count() error {
	if it.header.Count < 0 {
		return invalid("Found invalid record count %d in magic v2 batch", it.header.Count)
	}
	it.left = it.header.Count
	return nil
}

// ResetTo starts on the current entry of a scanner, which must not be used
// before the iterator is at its end or closed. A batch of magic 2 that is not
// compressed is read in pieces of 64 KiB, or of its largest record, as far as
// the iteration goes; other entries are loaded ([Scanner.Batch]). Besides the
// errors of NewIterator there is *ReadError here, in Err too.
func (it *Iterator) ResetTo(s *Scanner, o IterOptions) error {
	if h := s.Header(); h.Magic < 2 || h.Codec() != None {
		entry, err := s.Batch()
		if err != nil {
			it.fail(&ReadError{err})
			return it.err
		}
		return it.Reset(entry, o)
	}
	it.Close()
	it.opt, it.err, it.header = o, nil, s.Header()
	if err := it.count(); err != nil {
		it.fail(err)
		return err
	}
	if it.left > 0 {
		it.body.file, it.body.at = s, s.Pos()+HeaderSize
	}
	return nil
}

// Header is the entry's header. For a wrapper of magic 0 or 1 its BaseOffset is
// corrected to that of the first record inside, and Count is set.
func (it *Iterator) Header() Header { return it.header }

// Record is the current record, valid until the next call of Next, Reset or
// Close.
func (it *Iterator) Record() *Record { return &it.rec }

// Err is why Next returned false, nil at the end of the records.
func (it *Iterator) Err() error { return it.err }

// Close releases the iterator's buffers; it may be called at any time.
func (it *Iterator) Close() {
	it.body.release()
	it.left = 0
	it.old.stop()
}

// Next decodes the next record and reports whether there is one.
//
// Kafka: a batch with bytes left over gives its last record to nobody.
func (it *Iterator) Next() bool {
	if it.header.Magic < 2 && it.err == nil {
		return it.nextOld()
	}
	if it.left == 0 {
		it.body.release()
		return false
	}
	if err := it.decode(); err != nil {
		it.fail(err)
		return false
	}
	return true
}

func (it *Iterator) fail(err error) {
	it.Close()
	it.err = err
}

// decode takes one record off the body.
func (it *Iterator) decode() error {
	n, used := wire.Varint(it.body.chunk)
	if used <= 0 {
		var err error
		if n, used, err = it.lengthAcross(); err != nil {
			return err
		}
	}
	if err := it.payload(used, int(n)); err != nil {
		return err
	}
	end := used + int(n)
	if it.left == 1 {
		// Look for bytes after the last record while it can still be moved.
		if err := it.body.need(end + 1); err != nil {
			return err
		}
	}
	if err := parseRecord(it.body.chunk[used:end:end], &it.rec, it.opt.SkipKV); err != nil {
		return err
	}
	it.body.chunk = it.body.chunk[end:]
	it.rec.Offset += it.header.BaseOffset
	if it.header.Attributes&logAppendTimeBit != 0 {
		it.rec.Timestamp = it.header.MaxTimestamp
	} else {
		it.rec.Timestamp += it.header.BaseTimestamp
	}
	if it.left--; it.left == 0 && len(it.body.chunk) > 0 {
		return invalid("Incorrect declared batch size, records still remaining in file")
	}
	return nil
}

// lengthAcross reads a length field that the current piece does not hold whole.
func (it *Iterator) lengthAcross() (n int32, used int, err error) {
	for want := 1; want <= 5; want++ {
		if err := it.body.need(want); err != nil {
			return 0, 0, err
		}
		n, used = wire.Varint(it.body.chunk)
		if used > 0 {
			return n, used, nil
		}
		if used < 0 {
			return 0, 0, invalid(errStructure)
		}
		if len(it.body.chunk) < want {
			break
		}
	}
	return 0, 0, invalid("Incorrect declared batch size, premature EOF reached")
}

// payload brings the n bytes after the length field of size used into the
// chunk.
func (it *Iterator) payload(used, n int) error {
	if n < 0 {
		return invalid(errStructure)
	}
	if len(it.body.chunk) >= used+n {
		return nil
	}
	if it.body.src == nil && it.body.file == nil {
		return invalid("Invalid record size: expected %d bytes in record payload, but instead the buffer has only %d "+
			"remaining bytes.", n, len(it.body.chunk)-used)
	}
	if err := it.body.need(used + n); err != nil {
		return err
	}
	if len(it.body.chunk) < used+n {
		return invalid("Invalid record size: expected %d bytes in record payload, but the record payload reached EOF.",
			n)
	}
	return nil
}
