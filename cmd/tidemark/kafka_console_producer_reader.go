package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"tidemark/cmd/internal/cli"
	"tidemark/record"
)

// newRecord is a record read from the input.
type newRecord struct {
	key, value []byte // nil = null
	headers    []record.RecordHeader
}

// lineReader turns lines into records as Kafka's LineMessageReader does.
type lineReader struct {
	topic                                 string
	in                                    *bufio.Reader
	prompt                                io.Writer // or nil
	parseKey, parseHeaders, ignoreError   bool
	keySeparator                          string
	headersDelimiter, headersKeySeparator string
	headersSeparator                      *regexp.Regexp
	nullMarker                            string
	hasNullMarker                         bool
	lineNumber                            int
}

const classKafkaException = "org.apache.kafka.common.KafkaException"

func newLineReader(env *cli.Env, p cli.Properties) (*lineReader, error) {
	isTrue := func(key string) bool { return strings.EqualFold(strings.TrimSpace(p[key]), "true") }
	r := &lineReader{
		topic: p["topic"], in: bufio.NewReaderSize(env.Stdin, 64<<10),
		parseKey: isTrue("parse.key"), parseHeaders: isTrue("parse.headers"), ignoreError: isTrue("ignore.error"),
		keySeparator: p.Get("key.separator", "\t"), headersDelimiter: p.Get("headers.delimiter", "\t"),
		headersKeySeparator: p.Get("headers.key.separator", ":"),
	}
	separator := p.Get("headers.separator", ",")
	r.nullMarker, r.hasNullMarker = p["null.marker"]
	if r.headersDelimiter == separator {
		return nil, cli.Fail(classKafkaException, "headers.delimiter and headers.separator may not be equal")
	}
	if r.headersDelimiter == r.headersKeySeparator {
		return nil, cli.Fail(classKafkaException, "headers.delimiter and headers.key.separator may not be equal")
	}
	if separator == r.headersKeySeparator {
		return nil, cli.Fail(classKafkaException, "headers.separator and headers.key.separator may not be equal")
	}
	names := []struct{ name, value string }{
		{"key.separator", r.keySeparator}, {"headers.separator", separator}, {"headers.delimiter", r.headersDelimiter},
		{"headers.key.separator", r.headersKeySeparator},
	}
	for _, n := range names {
		if r.isNull(n.value) {
			return nil, cli.Fail(classKafkaException, "null.marker and %s may not be equal", n.name)
		}
	}
	var err error
	if r.headersSeparator, err = regexp.Compile(separator); err != nil {
		return nil, cli.Fail("java.util.regex.PatternSyntaxException", "%s", err)
	}
	if isTerminal(env.Stdin) && isTerminal(env.Stdout) {
		r.prompt = env.Stdout
	}
	return r, nil
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

func (r *lineReader) isNull(text string) bool { return r.hasNullMarker && text == r.nullMarker }

// next reads one record; io.EOF ends the input. A line that lacks a separator is a
// Failure unless errors are ignored.
func (r *lineReader) next() (*newRecord, error) {
	r.lineNumber++
	if r.prompt != nil {
		fmt.Fprint(r.prompt, ">")
	}
	line, err := r.line()
	if err != nil {
		return nil, err
	}
	rest := line
	headers, hasHeaders, err := r.cut(r.parseHeaders, line, &rest, r.headersDelimiter, "headers delimiter")
	if err != nil {
		return nil, err
	}
	key, hasKey, err := r.cut(r.parseKey, line, &rest, r.keySeparator, "key separator")
	if err != nil {
		return nil, err
	}
	one := &newRecord{}
	if hasKey && !r.isNull(key) {
		one.key = []byte(key)
	}
	if !r.isNull(rest) {
		one.value = []byte(rest)
	}
	if hasHeaders && !r.isNull(headers) {
		if one.headers, err = r.splitHeaders(headers); err != nil {
			return nil, err
		}
	}
	return one, nil
}

// line reads up to "\n", "\r" or "\r\n". Bytes that are no UTF-8 become U+FFFD.
func (r *lineReader) line() (string, error) {
	var line []byte
	for {
		b, err := r.in.ReadByte()
		if err == io.EOF && len(line) > 0 {
			break
		}
		if err != nil {
			return "", err
		}
		if b == '\n' {
			break
		}
		if b == '\r' {
			if after, err := r.in.Peek(1); err == nil && after[0] == '\n' {
				_, _ = r.in.Discard(1) // it is buffered
			}
			break
		}
		line = append(line, b)
	}
	return cli.JavaString(line), nil
}

// cut takes the text before a separator off *rest; ok is false when there is none, or
// when it is not wanted.
func (r *lineReader) cut(wanted bool, line string, rest *string, separator, what string,
) (text string, ok bool, err error) {
	if !wanted {
		return "", false, nil
	}
	before, after, found := strings.Cut(*rest, separator)
	if !found {
		if r.ignoreError {
			return "", false, nil
		}
		return "", false, cli.Fail(classKafkaException, "No %s found on line number %d: '%s'", what, r.lineNumber, line)
	}
	*rest = after
	return before, true, nil
}

func (r *lineReader) splitHeaders(text string) ([]record.RecordHeader, error) {
	pairs := r.headersSeparator.Split(text, -1)
	for len(pairs) > 1 && pairs[len(pairs)-1] == "" {
		pairs = pairs[:len(pairs)-1]
	}
	var headers []record.RecordHeader
	for _, pair := range pairs {
		key, value, found := strings.Cut(pair, r.headersKeySeparator)
		switch {
		case !found && r.ignoreError:
			headers = append(headers, record.RecordHeader{Key: []byte(pair)})
			continue
		case !found:
			return nil, cli.Fail(classKafkaException, "No header key separator found in pair '%s' on line number %d",
				pair, r.lineNumber)
		case r.isNull(key):
			return nil, cli.Fail(classKafkaException, "Header keys should not be equal to the null marker '%s' as they "+
				"can't be null", r.nullMarker)
		}
		header := record.RecordHeader{Key: []byte(key)}
		if !r.isNull(value) {
			header.Value = []byte(value)
		}
		headers = append(headers, header)
	}
	return headers, nil
}
