package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// emit writes one JSON line.
func (o *logOptions) emit(v any) error { return writeJSON(o.env.Stdout, v) }

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// jsonLine writes one JSON object with one long array in it, element by element: the fields of a first object, the
// array, the fields of a last object. What went wrong first is told by end.
type jsonLine struct {
	w   *bufio.Writer
	n   int // elements
	err error
}

func startLine(w io.Writer, head any, array string) *jsonLine {
	l := &jsonLine{w: bufio.NewWriterSize(w, 32<<10)}
	l.write(bytes.TrimSuffix(l.encode(head), []byte("}")))
	l.print(`,%q:[`, array)
	return l
}

func (l *jsonLine) element(v any) error {
	if l.n++; l.n > 1 {
		l.print(",")
	}
	l.write(l.encode(v))
	return l.err
}

// end writes the fields of the last object.
func (l *jsonLine) end(tail any) error {
	l.print("],")
	l.write(append(bytes.TrimPrefix(l.encode(tail), []byte("{")), '\n'))
	if err := l.w.Flush(); l.err == nil {
		l.err = err
	}
	return l.err
}

// fail ends the object with an error in the place of the last fields, and returns it.
func (l *jsonLine) fail(err error) error {
	if l.err == nil {
		_ = l.end(struct {
			Error string `json:"error"`
		}{err.Error()})
	}
	return err
}

func (l *jsonLine) encode(v any) []byte {
	var b bytes.Buffer
	if err := writeJSON(&b, v); l.err == nil {
		l.err = err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func (l *jsonLine) write(b []byte) {
	if l.err == nil {
		_, l.err = l.w.Write(b)
	}
}

func (l *jsonLine) print(format string, args ...any) { l.write(fmt.Appendf(nil, format, args...)) }
