package inspect

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

var pageSize = int64(os.Getpagesize())

// mapChunk is how much of a file is mapped at a time; mapping reads nothing.
const mapChunk = 1 << 30

// hidden says why the system does not tell the truth about a file: since Linux 5.2 a file looks wholly resident to
// those who neither own it nor may write to it. "" when it does.
func hidden(name string, info fs.FileInfo) string {
	if os.Geteuid() == 0 {
		return ""
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == os.Geteuid() {
		return ""
	}
	if unix.Access(name, unix.W_OK) == nil {
		return ""
	}
	return "the kernel tells only the file's owner and those who may write to it"
}

// resident calls a function with mincore's answer, a byte a page, part by part.
func resident(fd uintptr, size int64, each func(pages []byte)) error {
	vec := make([]byte, (min(mapChunk, size)+pageSize-1)/pageSize)
	for pos := int64(0); pos < size; pos += mapChunk {
		n := min(mapChunk, size-pos)
		data, err := unix.Mmap(int(fd), pos, int(n), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return fmt.Errorf("map: %w", err)
		}
		part := vec[:(n+pageSize-1)/pageSize]
		err = mincore(data, part)
		if unmapErr := unix.Munmap(data); err == nil {
			err = unmapErr
		}
		if err != nil {
			return fmt.Errorf("mincore: %w", err)
		}
		each(part)
	}
	return nil
}
