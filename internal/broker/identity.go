package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strconv"
	"strings"

	"tidemark/internal/checkpoint"
	"tidemark/internal/config"
	"tidemark/internal/controller"
)

// firstNodeID is the node of a directory that is made new and given no number.
const firstNodeID = 1

// fillProperties adds to the properties what a node that stands alone needs: its number comes from the
// meta.properties of its log directories.
func (b *Broker) fillProperties() (map[string]string, error) {
	props := maps.Clone(b.opts.Properties)
	config.FillStandalone(props)
	if b.readOnly() {
		b.readOnlyProperties(props)
		config.FillStandalone(props)
		return props, nil
	}
	if props["node.id"] != "" || props["broker.id"] != "" {
		return props, nil
	}
	props["node.id"] = strconv.Itoa(firstNodeID)
	for _, dir := range LogDirs(props) {
		m, err := checkpoint.ReadAnyMetaProperties(b.opts.FS, filepath.Join(dir, checkpoint.MetaPropertiesFile))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read identity of log directory %s: %w", dir, err)
		}
		if m.NodeID >= 0 {
			props["node.id"] = strconv.Itoa(int(m.NodeID))
		}
	}
	return props, nil
}

// LogDirs are the log directories that properties name.
func LogDirs(props map[string]string) []string {
	list := props["log.dirs"]
	if list == "" {
		list = props["log.dir"]
	}
	var dirs []string
	for dir := range strings.SplitSeq(list, ",") {
		if dir = strings.TrimSpace(dir); dir != "" {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// newID draws a random id.
func newID() [16]byte {
	id, err := controller.NewUUID(rand.Reader)
	if err != nil {
		panic(err) // the system's random source does not fail
	}
	return id
}

// identify makes directories that are new this node's.
func (b *Broker) identify(context.Context) error {
	m, found := b.dirs.Identity()
	if !found {
		m.ClusterID = checkpoint.FormatID(newID())
	}
	return b.dirs.Format(m.ClusterID, b.config().NodeID)
}

func (b *Broker) clusterID() string {
	if b.readOnly() {
		return b.found.cluster
	}
	m, _ := b.dirs.Identity()
	return m.ClusterID
}
