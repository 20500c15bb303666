package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// wholes are the file systems of which syncfs is known to wait for the disk, flush its cache and pass on errors.
var wholes = []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC}

// openWhole returns nil on kernels before 5.8, whose syncfs does not tell of errors.
func openWhole(dir string) (Whole, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return nil, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	//nolint:unconvert // the type differs from architecture to architecture
	if !kernelAtLeast(5, 8) || !slices.Contains(wholes, int64(stat.Type)) {
		return nil, nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return osWhole{f}, nil
}

type osWhole struct{ *os.File }

func (w osWhole) Sync() error {
	for {
		err := unix.Syncfs(int(w.Fd()))
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return &fs.PathError{Op: "syncfs", Path: w.Name(), Err: err}
		}
	}
}

func kernelAtLeast(major, minor int) bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var version [2]int
	_, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &version[0], &version[1])
	return err == nil && slices.Compare(version[:], []int{major, minor}) >= 0
}
