package demohost

import (
	"bytes"
	"io"
	"os"
	"time"
)

// Keys of a terminal.
const (
	ctrlC = 0x03
	ctrlD = 0x04
	ctrlE = 0x05
	ctrlU = 0x15
)

// keyboard converts keys to input for the program on the terminal.
type keyboard struct {
	shell     *shell
	feed      *os.File  // where the program reads them
	screen    io.Writer // shows them; writes go to memory and do not fail
	interrupt func()    // ends the program
}

// press handles the first of some keys, or a run of similar keys, and returns their number.
func (k keyboard) press(p []byte) (n int) {
	switch p[0] {
	case ctrlC:
		_, _ = io.WriteString(k.screen, "^C\r\n")
		k.interrupt()
		fallthrough
	case ctrlD:
		_ = k.feed.Close() // a program that waits for input sees its end
		return 1
	}
	if n = bytes.IndexAny(p, "\x03\x04"); n < 0 {
		n = len(p)
	}
	text := bytes.ReplaceAll(p[:n], []byte("\r"), []byte("\n"))
	if !k.shell.silent.Load() {
		_, _ = crlf{k.screen}.Write(text)
	}
	_ = k.feed.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)) // a pipe
	_, _ = k.feed.Write(text)                                          // excess text is lost
	return n
}
