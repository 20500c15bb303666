package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"tidemark/vfs"
)

// MalformedError is a file that breaks its format.
type MalformedError struct {
	File   string // path
	Line   int    // counted from 1; 0 when it concerns the file
	Text   string // the line
	Reason string // what is wrong with it
}

// Error names file and line. For a line of a checkpoint it starts as Kafka's
// message does: "Malformed line in checkpoint file [PATH]: LINE".
func (e *MalformedError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("malformed file [%s]: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("Malformed line in checkpoint file [%s]: %s (line %d: %s)", e.File, e.Text, e.Line, e.Reason)
}

const textVersion = 0

// readText reads a checkpoint file and passes the fields of every entry to parse.
// An absent file has no entries.
func readText(fsys vfs.FS, name string, nFields int, parse func(fields []string) error) error {
	data, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read checkpoint: %w", err)
	}
	return parseText(name, string(data), nFields, parse)
}

func parseText(name, data string, nFields int, parse func(fields []string) error) error {
	lines := splitLines(data)
	malformed := func(i int, reason string) error {
		return &MalformedError{File: name, Line: i + 1, Text: lines[i], Reason: reason}
	}
	if len(lines) == 0 {
		return nil
	}
	if version, err := parseInt(lines[0], 32); err != nil {
		return malformed(0, "the version is not a number")
	} else if version != textVersion {
		return malformed(0, fmt.Sprintf("unknown version, expected %d", textVersion))
	}
	// Kafka: CheckpointFile takes a file that ends after the version for empty.
	if len(lines) == 1 {
		return nil
	}
	count, err := parseInt(lines[1], 32)
	if err != nil {
		return malformed(1, "the number of entries is not a number")
	}
	for i, line := range lines[2:] {
		fields, ok := splitFields(line, nFields)
		if !ok {
			return malformed(i+2, fmt.Sprintf("not %d fields", nFields))
		}
		if err := parse(fields); err != nil {
			return malformed(i+2, err.Error())
		}
	}
	if entries := int64(len(lines) - 2); entries != count {
		return malformed(1, fmt.Sprintf("the file has %d entries", entries))
	}
	return nil
}

// splitLines cuts at LF, CR and CR LF; a line end at the end of the file opens no
// further line.
func splitLines(data string) []string {
	data = strings.ReplaceAll(data, "\r\n", "\n")
	data = strings.ReplaceAll(data, "\r", "\n")
	if data == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(data, "\n"), "\n")
}

// splitFields cuts at runs of blanks. Blanks at the end are allowed, blanks at the
// start are not.
func splitFields(line string, n int) ([]string, bool) {
	fields := strings.FieldsFunc(line, isBlank)
	ok := len(fields) == n && !isBlank(rune(line[0]))
	return fields, ok
}

func isBlank(r rune) bool { return r == ' ' || r >= '\t' && r <= '\r' }

// parseInt reads a decimal number with an optional sign, of 32 or 64 bits.
func parseInt(s string, bits int) (int64, error) {
	v, err := strconv.ParseInt(s, 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of %d bits", s, bits)
	}
	return v, nil
}

// writeText writes a checkpoint file of the given entry lines.
func writeText(fsys vfs.FS, name string, entries []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d\n%d\n", textVersion, len(entries))
	for _, e := range entries {
		b.WriteString(e)
		b.WriteByte('\n')
	}
	if err := vfs.WriteFileAtomic(fsys, name, []byte(b.String())); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	return nil
}
