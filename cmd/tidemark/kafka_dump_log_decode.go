package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tidemark/cmd/internal/cli"
	"tidemark/cmd/internal/recordjson"
	"tidemark/record"
)

// recordDecoder gives the texts of a record's key and value; nil stands for none. They may be the record's own bytes.
type recordDecoder func(r *record.Record) (key, value []byte, err error)

func (d *dumper) printContent(r *record.Record) error {
	key, value, err := d.decode(r)
	if err != nil {
		return err
	}
	prefix := " "
	if d.skipMetadata {
		prefix = "| "
	}
	if key != nil {
		d.printField(prefix, "key: ", key)
		prefix = " "
	}
	if value != nil {
		d.printField(prefix, "payload: ", value)
	}
	return nil
}

func (d *dumper) printField(prefix, name string, text []byte) {
	d.out.WriteString(prefix) //nolint:errcheck // Flush tells
	d.out.WriteString(name)   //nolint:errcheck // Flush tells
	d.out.Write(text)         //nolint:errcheck // Flush tells
}

// decoder picks the decoder that the options ask for.
func (o *dumpOptions) decoder() (recordDecoder, error) {
	switch {
	case o.offsets.Has():
		return coordinatorDecoder(recordjson.GroupTopic), nil
	case o.transactions.Has():
		return coordinatorDecoder(recordjson.TransactionTopic), nil
	case o.cluster.Has():
		return decodeMetadata, nil
	}
	for _, missing := range []*cli.Option{o.remote, o.share} {
		if missing.Has() {
			return nil, cli.Fail("java.lang.UnsupportedOperationException", "--%s is not available in this tool", missing.Name)
		}
	}
	value, err := fieldDecoder(o.valueDecoder)
	if err != nil {
		return nil, err
	}
	key, err := fieldDecoder(o.keyDecoder)
	if err != nil {
		return nil, err
	}
	return func(r *record.Record) (k, v []byte, err error) {
		if k, err = optional(r.Key, key); err != nil {
			return nil, nil, err
		}
		v, err = optional(r.Value, value)
		return k, v, err
	}, nil
}

func decodeMetadata(r *record.Record) (key, value []byte, err error) {
	text, err := recordjson.Metadata(r.Value)
	if err != nil {
		text = fmt.Sprintf("Error at %d, skipping. %s", r.Offset, err)
	}
	return nil, []byte(text), nil
}

// coordinatorDecoder shows the records of a coordinator's topic.
func coordinatorDecoder(topic recordjson.Topic) recordDecoder {
	return func(r *record.Record) (key, value []byte, err error) {
		if r.Key == nil {
			return nil, nil, cli.Fail("java.lang.RuntimeException", "Failed to decode message at offset %d using the "+
				"specified decoder (message had a missing key)", r.Offset)
		}
		rec, err := recordjson.Coordinator(topic, r.Key, r.Value)
		var unknown *recordjson.UnknownTypeError
		var text string
		switch {
		case errors.As(err, &unknown):
			text = fmt.Sprintf("Unknown record type %d at offset %d, skipping.", unknown.Type, r.Offset)
			return []byte(text), nil, nil
		case err != nil:
			text = fmt.Sprintf("Error at offset %d, skipping. %s", r.Offset, err)
			return []byte(text), nil, nil
		}
		if topic == recordjson.GroupTopic {
			recordjson.OpenProtocol(&rec)
		}
		text = fmt.Sprintf(`{"type":"%d","data":%s}`, rec.Type, rec.Key)
		shown := "<DELETE>"
		if !rec.Deleted {
			shown = fmt.Sprintf(`{"version":"%d","data":%s}`, rec.Version, rec.Value)
		}
		return []byte(text), []byte(shown), nil
	}
}

func optional(data []byte, decode func([]byte) ([]byte, error)) ([]byte, error) {
	if data == nil {
		return nil, nil
	}
	return decode(data)
}

func fieldDecoder(o *cli.Option) (func([]byte) ([]byte, error), error) {
	class, err := o.Value()
	if err != nil {
		return nil, err
	}
	switch strings.TrimPrefix(class, decoderPackage) {
	case "StringDecoder":
		return func(b []byte) ([]byte, error) { return cli.JavaText(b), nil }, nil
	case "IntegerDecoder":
		return func(b []byte) ([]byte, error) {
			if len(b) < 4 {
				return nil, &cli.Failure{Class: "java.nio.BufferUnderflowException"}
			}
			return strconv.AppendInt(nil, int64(int32(binary.BigEndian.Uint32(b))), 10), nil
		}, nil
	case "LongDecoder":
		return func(b []byte) ([]byte, error) {
			if len(b) < 8 {
				return nil, &cli.Failure{Class: "java.nio.BufferUnderflowException"}
			}
			return strconv.AppendInt(nil, int64(binary.BigEndian.Uint64(b)), 10), nil
		}, nil
	case "DefaultDecoder":
		return func([]byte) ([]byte, error) { return []byte("[B@0"), nil }, nil
	}
	failure := cli.Fail("java.lang.RuntimeException", "Failed to load decoder class")
	failure.Cause = cli.Fail("java.lang.ClassNotFoundException", "%s", class)
	return nil, failure
}
