package crash

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"sync"
	"syscall"
)

// watched counts how often each file of a directory is read or created. A command that only reads leaves no other
// trace.
type watched struct {
	events *os.File
	ended  chan struct{}

	mu     sync.Mutex
	counts map[string]int
	mask   uint32 // the counted events
}

// created watches which files are created in a directory.
func created(dir string) (*watched, error) {
	return watchFor(dir, syscall.IN_CREATE|syscall.IN_MOVED_TO, 0)
}

// watch watches which files of a directory are read. The kernel merges equal events that have not been read. The events
// in between keep them apart.
func watch(dir string) (*watched, error) {
	return watchFor(dir, syscall.IN_ACCESS, syscall.IN_OPEN|syscall.IN_CLOSE_NOWRITE)
}

func watchFor(dir string, mask, between uint32) (*watched, error) {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	if _, err := syscall.InotifyAddWatch(fd, dir, mask|between); err != nil {
		return nil, errors.Join(os.NewSyscallError("inotify_add_watch", err), syscall.Close(fd))
	}
	w := &watched{events: os.NewFile(uintptr(fd), "inotify"), ended: make(chan struct{}), counts: map[string]int{},
		mask: mask}
	go w.read()
	return w, nil
}

// read reads events until the file is closed. Each event is four 32-bit numbers, followed by a name. The second number
// is the kind of event, and the last is the length of the name.
func (w *watched) read() {
	defer close(w.ended)
	buf := make([]byte, 64<<10)
	for {
		n, err := w.events.Read(buf)
		if err != nil {
			return
		}
		for b := buf[:n]; len(b) >= syscall.SizeofInotifyEvent; {
			mask, size := binary.NativeEndian.Uint32(b[4:]), int(binary.NativeEndian.Uint32(b[12:]))
			name, _, _ := bytes.Cut(b[syscall.SizeofInotifyEvent:][:size], []byte{0})
			if mask&w.mask != 0 {
				w.mu.Lock()
				w.counts[string(name)]++
				w.mu.Unlock()
			}
			b = b[syscall.SizeofInotifyEvent+size:]
		}
	}
}

// times returns how often the file was read or created. The file is short, so a command reads it in one call. The
// supervisor opens the file before the command does, but does not read it.
func (w *watched) times(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts[name]
}

func (w *watched) close() error {
	err := w.events.Close()
	<-w.ended
	return err
}
