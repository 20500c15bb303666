package cli

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"strings"

	"github.com/magiconair/properties"
)

// Properties are Kafka client settings by name.
type Properties map[string]string

// LoadProperties reads a Java properties file. References like ${x} are left alone.
// A missing file is a Failure with the file's name as its text, as in Java.
func LoadProperties(name string) (Properties, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Fail("java.nio.file.NoSuchFileException", "%s", name)
	}
	if err != nil {
		return nil, Fail("java.io.IOException", "%s", err)
	}
	loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	parsed, err := loader.LoadBytes(data)
	if err != nil {
		return nil, BadArgument("%s", err)
	}
	return parsed.Map(), nil
}

// Merge adds the settings of more; they win.
func (p Properties) Merge(more Properties) { maps.Copy(p, more) }

// Get is the value of a key, or def when the key is absent.
func (p Properties) Get(key, def string) string {
	if v, ok := p[key]; ok {
		return v
	}
	return def
}

// KeyValues reads arguments of the form key=value; a key alone has an empty value.
func KeyValues(args []string) Properties {
	parsed := Properties{}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		parsed[key] = value
	}
	return parsed
}
