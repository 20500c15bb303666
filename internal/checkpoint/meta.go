package checkpoint

import (
	"fmt"
	"time"

	"github.com/magiconair/properties"

	"tidemark/vfs"
)

const metaVersion = 1

// MetaProperties is the content of meta.properties: whose log directory it is.
type MetaProperties struct {
	ClusterID   string
	NodeID      int32
	DirectoryID [16]byte // of this log directory; zero: none given
}

// ReadMetaProperties reads meta.properties. Errors: fs.ErrNotExist,
// *MalformedError, or those of the disk. Keys that are not known are ignored.
func ReadMetaProperties(fsys vfs.FS, name string) (MetaProperties, error) {
	data, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return MetaProperties{}, fmt.Errorf("read meta properties: %w", err)
	}
	m, err := parseMetaProperties(data)
	if err != nil {
		return MetaProperties{}, &MalformedError{File: name, Reason: err.Error()}
	}
	return m, nil
}

// ReadAnyMetaProperties reads of a meta.properties of any version what is in it, that of a broker in ZooKeeper mode
// included; NodeID is -1 where there is none. Errors as [ReadMetaProperties].
func ReadAnyMetaProperties(fsys vfs.FS, name string) (MetaProperties, error) {
	m := MetaProperties{NodeID: -1}
	data, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return m, fmt.Errorf("read meta properties: %w", err)
	}
	p, err := loadProperties(data)
	if err != nil {
		return m, &MalformedError{File: name, Reason: err.Error()}
	}
	m.ClusterID = p.GetString("cluster.id", "")
	for _, key := range []string{"node.id", "broker.id"} {
		if id, err := parseInt(p.GetString(key, ""), 32); err == nil && id >= 0 {
			m.NodeID = int32(id)
			break
		}
	}
	return m, nil
}

func loadProperties(data []byte) (*properties.Properties, error) {
	loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	return loader.LoadBytes(data)
}

func parseMetaProperties(data []byte) (m MetaProperties, err error) {
	p, err := loadProperties(data)
	if err != nil {
		return m, err
	}
	if v, ok := p.Get("version"); !ok {
		return m, fmt.Errorf("no version")
	} else if n, err := parseInt(v, 32); err != nil || n != metaVersion {
		return m, fmt.Errorf("version %q, expected %d", v, metaVersion)
	}
	id, ok := p.Get("node.id")
	if !ok {
		return m, fmt.Errorf("no node.id")
	}
	node, err := parseInt(id, 32)
	if err != nil || node < 0 {
		return m, fmt.Errorf("node.id %q is not a node's id", id)
	}
	m.NodeID = int32(node)
	if m.ClusterID, ok = p.Get("cluster.id"); !ok {
		return m, fmt.Errorf("no cluster.id")
	}
	if id, ok := p.Get("directory.id"); ok {
		m.DirectoryID, err = ParseID(id)
	}
	return m, err
}

// metaDateLayout is how Java prints a date.
const metaDateLayout = "Mon Jan 02 15:04:05 MST 2006"

// WriteMetaProperties writes meta.properties, durably, with now in its comment.
func WriteMetaProperties(fsys vfs.FS, name string, m MetaProperties, now time.Time) error {
	data := fmt.Sprintf("#\n#%s\nnode.id=%d\n", now.UTC().Format(metaDateLayout), m.NodeID)
	if m.DirectoryID != [16]byte{} {
		data += fmt.Sprintf("directory.id=%s\n", FormatID(m.DirectoryID))
	}
	data += fmt.Sprintf("version=%d\ncluster.id=%s\n", metaVersion, escapeProperty(m.ClusterID))
	if err := vfs.WriteFileAtomic(fsys, name, []byte(data)); err != nil {
		return fmt.Errorf("write meta properties: %w", err)
	}
	return nil
}

// escapeProperty writes a value so that Java's Properties reads it back.
func escapeProperty(s string) string {
	var out []byte
	for i, r := range s {
		switch {
		case r == ' ' && i == 0, r == '\\', r == '=', r == ':', r == '#', r == '!':
			out = append(out, '\\', byte(r))
		case r < ' ' || r > '~':
			for _, u := range utf16Units(r) {
				out = fmt.Appendf(out, "\\u%04X", u)
			}
		default:
			out = append(out, byte(r))
		}
	}
	return string(out)
}
