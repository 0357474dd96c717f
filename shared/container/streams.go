package container

import (
	"encoding/binary"
	"errors"
	"io"
)

// errFrame is of a stream that is not one of frames.
var errFrame = errors.New("container: what was printed came in a form that is not known")

// Demux writes what comes as Docker's frames (8 bytes of head: the stream, three zeros, the length in big endian) to
// the streams, until r ends. It holds no frame in memory, however long one says that it is. An error of a writer ends
// it; a frame that is cut off is [io.ErrUnexpectedEOF].
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
