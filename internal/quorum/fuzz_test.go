package quorum

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tidemark/vfs"
)

// FuzzReadSnapshot reads damaged snapshots: an error, or a whole snapshot with
// header, footer and checksums in order.
func FuzzReadSnapshot(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*/*.checkpoint")
	if err != nil || len(files) < 4 {
		f.Fatal(files, err)
	}
	for _, name := range append(files, "testdata/dynamic/bootstrap.checkpoint") {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fsys := vfs.NewMem()
		if err := vfs.WriteFileAtomic(fsys, "/s", data); err != nil {
			t.Fatal(err)
		}
		c, err := readSnapshot(fsys, "/s")
		if err == nil && c.image == nil {
			t.Fatal("neither snapshot nor error")
		}
		if errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	})
}

// FuzzReadState reads damaged quorum-state files.
func FuzzReadState(f *testing.F) {
	f.Add([]byte(`{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,` +
		`"currentVoters":[{"voterId":1}],"data_version":0}`))
	f.Add([]byte(`{"leaderId":1,"leaderEpoch":3,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",` +
		`"data_version":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fsys := vfs.NewMem()
		if err := vfs.WriteFileAtomic(fsys, "/"+stateFile, data); err != nil {
			t.Fatal(err)
		}
		s, known, err := readState(fsys, "/")
		if err != nil {
			return
		}
		if !known || s.LeaderEpoch < 0 || s.DataVersion < 0 || s.DataVersion > 1 {
			t.Fatalf("%+v", s)
		}
		if err := s.write(fsys, "/"); err != nil {
			t.Fatal(err)
		}
		if again, _, err := readState(fsys, "/"); err != nil || again.LeaderEpoch != s.LeaderEpoch {
			t.Fatalf("%+v became %+v (%v)", s, again, err)
		}
	})
}
