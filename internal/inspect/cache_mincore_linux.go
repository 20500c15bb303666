package inspect

import (
	"syscall"
	"unsafe"
)

// mincore asks which pages of a mapping are resident; vec has a byte for each.
func mincore(data, vec []byte) error {
	_, _, errno := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)),
		uintptr(unsafe.Pointer(&vec[0])))
	if errno != 0 {
		return errno
	}
	return nil
}
