package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// leastPacked is the minimum size in bytes for gzip. A smaller file fits in one packet anyway.
const leastPacked = 1200

// packer returns a function that compresses the file once, on first use, or nil if the file is sent uncompressed:
// pictures are compressed already, and pages have a new nonce each time.
func packer(kind string, data []byte) func() []byte {
	if len(data) < leastPacked || kind == types[".html"] || kind == types[".png"] {
		return nil
	}
	return sync.OnceValue(func() []byte {
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err == nil {
			_, err = w.Write(data)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil { // neither the level nor the buffer can fail
			panic("web: " + err.Error())
		}
		return packed.Bytes()
	})
}

// takesGzip reports whether the client accepts gzip. A range request is answered from the uncompressed file.
func takesGzip(h http.Header) bool {
	if h.Get("Range") != "" {
		return false
	}
	for coding := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, weight, weighed := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if !strings.EqualFold(name, "gzip") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ToLower(weight), "q="), 64)
		return !weighed || err == nil && q > 0
	}
	return false
}
