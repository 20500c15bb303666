//go:build oracle

package relay

import (
	"bufio"
	"encoding/json"
	"path/filepath"
	"strings"

	"tidemark/test/proc"
)

// offlineTools runs the other offline tools over the directories: they must end well and agree on where each partition
// begins and ends.
func (w *world) offlineTools() {
	w.t.Helper()
	type line struct {
		Type, Topic, Dir       string
		Partition              int32
		StartOffset, EndOffset int64
	}
	ends := make(map[string][2]int64)
	for _, command := range []string{"ls --scan", "find --time max", "cat --limit 1", "stats", "txns", "cache"} {
		args := append(append([]string{"log"}, strings.Fields(command)...), "--json")
		r := proc.Run(w.t, "", proc.Tidemark(w.t), append(args, w.dirs...)...)
		if r.Exit != 0 || strings.Contains(r.Stderr, "corrupt") {
			w.t.Errorf("tidemark log %s: exit status %d\n%s", command, r.Exit, r.Stderr)
		}
		lines := bufio.NewScanner(strings.NewReader(r.Stdout))
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			var l line
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil || l.Type == "" {
				w.t.Errorf("tidemark log %s: %v in %.200s", command, err, lines.Text())
			}
			switch l.Type {
			case "partition":
				ends[filepath.Base(l.Dir)] = [2]int64{l.StartOffset, l.EndOffset}
			case "found", "none":
				if got := [2]int64{l.StartOffset, l.EndOffset}; got != ends[filepath.Base(l.Dir)] {
					w.t.Errorf("tidemark log find: %s has offsets %v, by ls %v", l.Dir, got, ends[filepath.Base(l.Dir)])
				}
			}
		}
	}
	if len(ends) < len(w.folders()) {
		w.t.Errorf("tidemark log ls shows %d partitions, there are %d", len(ends), len(w.folders()))
	}
}
