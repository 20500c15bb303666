package main

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"tidemark/cmd/internal/cli"
	"tidemark/record"
)

// recordDecoder gives the texts of a record's key and value; nil stands for none.
type recordDecoder func(r *record.Record) (key, value *string, err error)

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
		fmt.Fprintf(d.out, "%skey: %s", prefix, *key)
		prefix = " "
	}
	if value != nil {
		fmt.Fprintf(d.out, "%spayload: %s", prefix, *value)
	}
	return nil
}

// decoder picks the decoder that the options ask for.
func (o *dumpOptions) decoder() (recordDecoder, error) {
	for _, later := range []*cli.Option{o.offsets, o.transactions, o.cluster, o.remote, o.share} {
		if later.Has() {
			return nil, cli.Fail("java.lang.UnsupportedOperationException", "--%s is not available in this tool", later.Name)
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
	return func(r *record.Record) (k, v *string, err error) {
		if k, err = optional(r.Key, key); err != nil {
			return nil, nil, err
		}
		v, err = optional(r.Value, value)
		return k, v, err
	}, nil
}

func optional(data []byte, decode func([]byte) (string, error)) (*string, error) {
	if data == nil {
		return nil, nil
	}
	text, err := decode(data)
	return &text, err
}

func fieldDecoder(o *cli.Option) (func([]byte) (string, error), error) {
	class, err := o.Value()
	if err != nil {
		return nil, err
	}
	switch strings.TrimPrefix(class, decoderPackage) {
	case "StringDecoder":
		return func(b []byte) (string, error) { return cli.JavaString(b), nil }, nil
	case "IntegerDecoder":
		return func(b []byte) (string, error) {
			if len(b) < 4 {
				return "", &cli.Failure{Class: "java.nio.BufferUnderflowException"}
			}
			return strconv.Itoa(int(int32(binary.BigEndian.Uint32(b)))), nil
		}, nil
	case "LongDecoder":
		return func(b []byte) (string, error) {
			if len(b) < 8 {
				return "", &cli.Failure{Class: "java.nio.BufferUnderflowException"}
			}
			return strconv.FormatInt(int64(binary.BigEndian.Uint64(b)), 10), nil
		}, nil
	case "DefaultDecoder":
		return func([]byte) (string, error) { return "[B@0", nil }, nil
	}
	failure := cli.Fail("java.lang.RuntimeException", "Failed to load decoder class")
	failure.Cause = cli.Fail("java.lang.ClassNotFoundException", "%s", class)
	return nil, failure
}
