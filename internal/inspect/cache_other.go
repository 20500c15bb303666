//go:build !linux

package inspect

import (
	"errors"
	"io/fs"
	"os"
)

var pageSize = int64(os.Getpagesize())

// hidden says that this system is not asked.
func hidden(string, fs.FileInfo) string { return "not asked on this system" }

func resident(uintptr, int64, func([]byte)) error { return errors.ErrUnsupported }
