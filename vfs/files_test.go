package vfs

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadEnd reads the ends of files that are shorter and longer than what is asked for, and than a page.
func TestReadEnd(t *testing.T) {
	each(t, func(t *testing.T, fsys FS, dir string) {
		for _, size := range []int{0, 1, 11, 12, 13, 4095, 4096, 4097, 9000} {
			name := filepath.Join(dir, "file")
			text := strings.Repeat("0123456789ab", size/12+1)[:size]
			create(t, fsys, name, text)
			changed := Overlay(fsys)
			create(t, changed, name, text)
			for _, ask := range []int{1, 12, 4095, 4096, 5000} {
				want := text[max(0, size-ask):]
				for what, fsys := range map[string]FS{"itself": fsys, "overlay": Overlay(fsys), "changed": changed} {
					end, got, err := ReadEnd(fsys, name, make([]byte, ask))
					if err != nil || got != int64(size) || string(end) != want {
						t.Errorf("%s: the last %d of %d bytes: %d bytes of %d, %v", what, ask, size, len(end), got, err)
					}
				}
			}
		}
		_, _, err := ReadEnd(fsys, filepath.Join(dir, "none"), make([]byte, 1))
		var path *fs.PathError
		if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &path) {
			t.Errorf("no such file: %v", err)
		}
	})
}
