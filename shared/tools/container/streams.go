package container

import (
	"encoding/binary"
	"errors"
	"io"
)

// errFrame means that a stream does not consist of Docker's frames.
var errFrame = errors.New("container: unknown format of the printed output")

// Demux reads Docker's frames from r until it ends, and writes their content to the streams. A frame begins with 8
// bytes: the stream, three zeros, and the length in big endian. Demux never holds a whole frame in memory, whatever
// length it declares. It returns the error of a writer, an error for data that is not a frame, or [io.ErrUnexpectedEOF]
// for a frame that is cut off.
func Demux(s Streams, r io.Reader) error {
	var head [8]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		var to io.Writer
		switch {
		case head[1] != 0 || head[2] != 0 || head[3] != 0:
			return errFrame
		case head[0] == 0 || head[0] == 1:
			to = s.Stdout
		case head[0] == 2:
			to = s.Stderr
		default:
			return errFrame
		}
		n := int64(binary.BigEndian.Uint32(head[4:]))
		if copied, err := io.CopyN(to, r, n); err == io.EOF && copied < n {
			return io.ErrUnexpectedEOF
		} else if err != nil {
			return err
		}
	}
}
