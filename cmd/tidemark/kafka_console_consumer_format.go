package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/cmd/internal/cli"
	"tidemark/cmd/internal/recordjson"
	"tidemark/record"
)

// formatter shows records as Kafka's DefaultMessageFormatter does.
type formatter struct {
	internal func(out io.Writer, r *kgo.Record) error // shows the record, when not nil; the rest then is not used

	timestamp, partition, offset, delivery, epoch, headers     bool
	key, value                                                 bool
	keySeparator, lineSeparator, headersSeparator, nullLiteral string
	keyReader, valueReader, headersReader                      deserializer // nil = bytes as they are
}

// deserializer reads bytes and gives their text as Java's toString would.
type deserializer func(data []byte) (string, error)

// internalFormatters are Kafka's other formatters, by class name.
var internalFormatters = map[string]func(io.Writer, *kgo.Record) error{
	"NoOpMessageFormatter":           func(io.Writer, *kgo.Record) error { return nil },
	"OffsetsMessageFormatter":        coordinatorFormatter(recordjson.GroupTopic, 0, 1),
	"GroupMetadataMessageFormatter":  coordinatorFormatter(recordjson.GroupTopic, 2),
	"TransactionLogMessageFormatter": coordinatorFormatter(recordjson.TransactionTopic),
}

// coordinatorFormatter shows records of a coordinator's topic as JSON, without a line
// end, as Kafka does. Only records of the types given are shown, of all types when none.
func coordinatorFormatter(topic recordjson.Topic, types ...int16) func(io.Writer, *kgo.Record) error {
	return func(out io.Writer, r *kgo.Record) error {
		if r.Key == nil {
			return nil
		}
		rec, err := recordjson.Coordinator(topic, r.Key, r.Value)
		var unknown *recordjson.UnknownTypeError
		switch {
		case errors.As(err, &unknown):
			return nil
		case err != nil:
			return cli.Fail("java.lang.RuntimeException", "Could not read record at offset %d due to: %s", r.Offset, err)
		case len(types) > 0 && !slices.Contains(types, rec.Type):
			return nil
		}
		value := "null"
		if !rec.Deleted {
			value = fmt.Sprintf(`{"version":%d,"data":%s}`, rec.Version, rec.Value)
		}
		return text(out, fmt.Sprintf(`{"key":{"type":%d,"data":%s},"value":%s}`, rec.Type, rec.Key, value))
	}
}

func configuredFormatter(env *cli.Env, p cli.Properties) formatter {
	isTrue := func(key, def string) bool { return strings.EqualFold(strings.TrimSpace(p.Get(key, def)), "true") }
	return formatter{
		timestamp: isTrue("print.timestamp", ""), key: isTrue("print.key", ""), offset: isTrue("print.offset", ""),
		delivery: isTrue("print.delivery", ""), epoch: isTrue("print.epoch", ""),
		partition: isTrue("print.partition", ""), headers: isTrue("print.headers", ""), value: isTrue("print.value", "true"),
		keySeparator: p.Get("key.separator", "\t"), lineSeparator: p.Get("line.separator", "\n"),
		headersSeparator: p.Get("headers.separator", ","), nullLiteral: p.Get("null.literal", "null"),
		keyReader:     newDeserializer(env, p, "key.deserializer"),
		valueReader:   newDeserializer(env, p, "value.deserializer"),
		headersReader: newDeserializer(env, p, "headers.deserializer"),
	}
}

const serializationPackage = "org.apache.kafka.common.serialization."

// newDeserializer finds the class that a setting names. One that is not known is logged
// and then not used, as in Kafka's tool.
func newDeserializer(env *cli.Env, p cli.Properties, key string) deserializer {
	name, ok := p[key]
	if !ok {
		return nil
	}
	if short, ok := strings.CutPrefix(name, serializationPackage); ok {
		if found, ok := deserializers[short]; ok {
			return found
		}
	}
	env.Log("ERROR", formatterPackage+"DefaultMessageFormatter", "Unable to instantiate a deserializer from "+name)
	fmt.Fprint(env.Stderr, cli.Fail("java.lang.ClassNotFoundException", "%s", name).Trace())
	return nil
}

// deserializers are Kafka's own, by class name.
var deserializers = map[string]deserializer{
	"StringDeserializer":     func(b []byte) (string, error) { return cli.JavaString(b), nil },
	"ByteArrayDeserializer":  func([]byte) (string, error) { return "[B@0", nil },
	"ByteBufferDeserializer": byteBufferText,
	"BytesDeserializer":      func(b []byte) (string, error) { return bytesText(b), nil },
	"VoidDeserializer": func([]byte) (string, error) {
		return "", cli.BadArgument("Data should be null for a VoidDeserializer.")
	},
	"UUIDDeserializer": uuidText,
	"BooleanDeserializer": sized("BooleanDeserializer", 1, func(b []byte) string {
		return strconv.FormatBool(b[0] != 0)
	}),
	"ShortDeserializer": sized("ShortDeserializer", 2, func(b []byte) string {
		return strconv.Itoa(int(int16(binary.BigEndian.Uint16(b))))
	}),
	"IntegerDeserializer": sized("IntegerDeserializer", 4, func(b []byte) string {
		return strconv.Itoa(int(int32(binary.BigEndian.Uint32(b))))
	}),
	"LongDeserializer": sized("LongDeserializer", 8, func(b []byte) string {
		return strconv.FormatInt(int64(binary.BigEndian.Uint64(b)), 10)
	}),
	"FloatDeserializer": sized("Deserializer", 4, func(b []byte) string {
		return cli.JavaFloat(math.Float32frombits(binary.BigEndian.Uint32(b)))
	}),
	"DoubleDeserializer": sized("Deserializer", 8, func(b []byte) string {
		return cli.JavaDouble(math.Float64frombits(binary.BigEndian.Uint64(b)))
	}),
}

const classSerialization = "org.apache.kafka.common.errors.SerializationException"

func sized(name string, size int, text func([]byte) string) deserializer {
	return func(b []byte) (string, error) {
		if len(b) != size {
			return "", cli.Fail(classSerialization, "Size of data received by %s is not %d", name, size)
		}
		return text(b), nil
	}
}

func byteBufferText(b []byte) (string, error) {
	return fmt.Sprintf("java.nio.HeapByteBuffer[pos=0 lim=%d cap=%d]", len(b), len(b)), nil
}

func bytesText(b []byte) string {
	var text strings.Builder
	for _, c := range b {
		if c >= ' ' && c <= '~' && c != '\\' {
			text.WriteByte(c)
		} else {
			fmt.Fprintf(&text, "\\x%02X", c)
		}
	}
	return text.String()
}

func uuidText(b []byte) (string, error) {
	parts := strings.Split(string(b), "-")
	if len(parts) != 5 {
		f := cli.Fail(classSerialization, "Error parsing data into UUID")
		f.Cause = cli.BadArgument("Invalid UUID string: %s", b)
		return "", f
	}
	return strings.ToLower(string(b)), nil
}

// write shows one record. It fails with a Failure when a field cannot be read, after
// what stands before it was written; an output that fails is found by the caller.
func (f formatter) write(out io.Writer, r *kgo.Record) error {
	if f.internal != nil {
		return f.internal(out, r)
	}
	columns := []struct {
		wanted bool
		write  func() error
	}{
		{f.timestamp, func() error { return text(out, timestampText(r)) }},
		{f.partition, func() error { return text(out, "Partition:"+strconv.Itoa(int(r.Partition))) }},
		{f.offset, func() error { return text(out, "Offset:"+strconv.FormatInt(r.Offset, 10)) }},
		{f.delivery, func() error { return text(out, "Delivery:NOT_PRESENT") }},
		{f.epoch, func() error { return text(out, "Epoch:NOT_PRESENT") }},
		{f.headers, func() error { return f.writeHeaders(out, r) }},
		{f.key, func() error { return f.writeField(out, f.keyReader, r.Key) }},
		{f.value, func() error { return f.writeField(out, f.valueReader, r.Value) }},
	}
	last := -1
	for i, c := range columns {
		if c.wanted {
			last = i
		}
	}
	for i, c := range columns {
		if !c.wanted {
			continue
		}
		if err := c.write(); err != nil {
			return err
		}
		separator := f.keySeparator
		if i == last {
			separator = f.lineSeparator
		}
		if err := text(out, separator); err != nil {
			return err
		}
	}
	return nil
}

func text(out io.Writer, s string) error {
	_, err := io.WriteString(out, s)
	return err
}

func timestampText(r *kgo.Record) string {
	kind := record.TimestampType(r.Attrs.TimestampType())
	if kind == record.NoTimestampType {
		return "NO_TIMESTAMP"
	}
	return kind.String() + ":" + strconv.FormatInt(r.Timestamp.UnixMilli(), 10)
}

func (f formatter) writeHeaders(out io.Writer, r *kgo.Record) error {
	if len(r.Headers) == 0 {
		return text(out, "NO_HEADERS")
	}
	for i, h := range r.Headers {
		if i > 0 {
			if err := text(out, f.headersSeparator); err != nil {
				return err
			}
		}
		if err := text(out, h.Key+":"); err != nil {
			return err
		}
		if err := f.writeField(out, f.headersReader, h.Value); err != nil {
			return err
		}
	}
	return nil
}

// writeField shows bytes; for null the literal is read in their place.
func (f formatter) writeField(out io.Writer, read deserializer, data []byte) error {
	if data == nil {
		data = []byte(f.nullLiteral)
	}
	if read == nil {
		_, err := out.Write(data)
		return err
	}
	s, err := read(data)
	if err != nil {
		return err
	}
	return text(out, s)
}
