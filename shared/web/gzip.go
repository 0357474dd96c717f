package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// leastPacked is how many bytes a file must have to be sent in gzip: a smaller one fits in one packet anyway.
const leastPacked = 1200

// packer returns the function that compresses the file, once and when it is first asked for, or nil for a file that is
// sent as it is: a picture is compressed already, and a page has another nonce each time.
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
		if err != nil { // neither the level nor the buffer can be refused
			panic("web: " + err.Error())
		}
		return packed.Bytes()
	})
}

// takesGzip reports whether the client takes gzip. A request for a range is answered from the file itself.
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
