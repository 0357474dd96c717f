package attachment

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// withoutLocation returns a picture or a movie without the place where it was taken, and whether it named one. A
// picture has the place in the GPS directory of its EXIF data, or in its XMP data, which is removed whole. All other
// bytes stay as they are; a structure that cannot be followed stays too, from there on.
func withoutLocation(mime string, data []byte) ([]byte, bool) {
	switch mime {
	case "image/jpeg":
		return jpegWithout(data)
	case "image/png":
		return pngWithout(data)
	case "image/webp":
		return webpWithout(data)
	case "image/heic", "image/heif":
		return heifWithout(data)
	case "video/mp4", "video/quicktime", "video/3gpp", "audio/mp4":
		return movieWithout(data)
	}
	return data, false
}

// The headers of EXIF and XMP data in a JPEG segment.
const (
	exifHeader = "Exif\x00\x00"
	xmpHeader  = "http://ns.adobe.com/xap/1.0/\x00"
	xmpMore    = "http://ns.adobe.com/xmp/extension/\x00"

	noHeader = "\x00\x00\x00\x00" // precedes EXIF data in a HEIC without a header
)

// jpegWithout walks the segments before the first scan.
func jpegWithout(data []byte) ([]byte, bool) {
	out, found := bytes.NewBuffer(make([]byte, 0, len(data))), false
	at := 2
	out.Write(data[:min(at, len(data))])
	for at+4 <= len(data) && data[at] == 0xff {
		kind, size := data[at+1], int(binary.BigEndian.Uint16(data[at+2:]))
		if kind == 0xff { // a fill byte
			out.WriteByte(0xff)
			at++
			continue
		}
		if kind == 0xda || kind == 0xd9 || size < 2 || at+2+size > len(data) {
			break
		}
		segment := data[at : at+2+size]
		at += 2 + size
		body := segment[4:]
		switch {
		case kind == 0xe1 && (hasPrefix(body, xmpHeader) || hasPrefix(body, xmpMore)) && namesPlace(body):
			found = true
			continue
		case kind == 0xe1 && hasPrefix(body, exifHeader):
			if tiff, had := tiffWithout(body[len(exifHeader):]); had {
				found = true
				out.Write(segment[:4+len(exifHeader)])
				out.Write(tiff)
				continue
			}
		}
		out.Write(segment)
	}
	rest, more := exifWithout(data[min(at, len(data)):], exifHeader) // a second picture can follow
	out.Write(rest)
	return out.Bytes(), found || more
}

// pngWithout walks the chunks: eXIf, and XMP and other texts that name a place.
func pngWithout(data []byte) ([]byte, bool) {
	const signature = 8
	out, found, at := bytes.NewBuffer(make([]byte, 0, len(data))), false, min(signature, len(data))
	out.Write(data[:at])
	for at+12 <= len(data) {
		size := int64(binary.BigEndian.Uint32(data[at:]))
		if size > int64(len(data)-at-12) {
			break
		}
		chunk := data[at : at+12+int(size)]
		at += len(chunk)
		kind, body := string(chunk[4:8]), chunk[8:8+size]
		switch {
		case kind == "eXIf":
			if tiff, had := tiffWithout(body); had {
				found = true
				chunk = pngChunk(kind, tiff)
			}
		case (kind == "iTXt" || kind == "tEXt" || kind == "zTXt") && hidesPlace(body):
			found = true
			continue
		}
		out.Write(chunk)
	}
	out.Write(data[at:])
	return out.Bytes(), found
}

func pngChunk(kind string, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = append(append(b, kind...), body...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// hidesPlace reports whether a text of a PNG is XMP or EXIF data that names a place, or may name one because it is
// compressed or in hexadecimal.
func hidesPlace(body []byte) bool {
	name, rest, _ := bytes.Cut(body, []byte{0})
	switch string(name) {
	case "XML:com.adobe.xmp":
		return namesPlace(body) || len(rest) > 0 && rest[0] == 1
	case "Raw profile type exif", "Raw profile type APP1", "Raw profile type xmp":
		return true
	}
	return false
}

// webpWithout walks the chunks of the RIFF file. A removed chunk is overwritten, because the header counts the bytes.
func webpWithout(data []byte) ([]byte, bool) {
	out, found := bytes.Clone(data), false
	for at := 12; at+8 <= len(out); {
		size := int64(binary.LittleEndian.Uint32(out[at+4:]))
		if size > int64(len(out)-at-8) {
			break
		}
		kind, body := string(out[at:at+4]), out[at+8:at+8+int(size)]
		switch {
		case kind == "EXIF":
			head := 0
			if hasPrefix(body, exifHeader) {
				head = len(exifHeader)
			}
			if tiff, had := tiffWithout(body[head:]); had {
				found = true
				copy(body[head:], tiff)
			}
		case kind == "XMP " && namesPlace(body):
			found = true
			blank(body)
		}
		at += 8 + int(size) + int(size)%2
	}
	return out, found
}

// heifWithout overwrites the GPS directories of EXIF data, and XMP data, in place. Both are items whose bytes are found
// by their own headers; the boxes that lead to them keep their sizes.
func heifWithout(data []byte) ([]byte, bool) {
	out, found := exifWithout(data, exifHeader, noHeader)
	for _, p := range xmpIn(out) {
		if packet := out[p.from:p.to]; namesPlace(packet) {
			found = true
			p.erase(packet)
		}
	}
	return out, found
}

// xmpIn returns the XMP packets in a file.
func xmpIn(data []byte) (all []place) {
	const first, last = "<x:xmpmeta", "</x:xmpmeta>"
	for at := 0; ; {
		begin := bytes.Index(data[at:], []byte(first))
		if begin < 0 {
			return all
		}
		begin += at
		end := bytes.Index(data[begin:], []byte(last))
		if end < 0 {
			return all
		}
		at = begin + end + len(last)
		all = append(all, place{begin, at, blank})
	}
}

// exifWithout overwrites the GPS directories of the EXIF data that begins after one of the headers, wherever it is.
func exifWithout(data []byte, headers ...string) (out []byte, found bool) {
	out = bytes.Clone(data)
	for _, header := range headers {
		for _, begins := range []string{littleEndian, bigEndian} {
			found = eraseBehind(out, header, begins) || found
		}
	}
	return out, found
}

func eraseBehind(data []byte, header, begins string) (found bool) {
	at := 0
	for range maxExifs {
		next := bytes.Index(data[at:], []byte(header+begins))
		if next < 0 {
			break
		}
		at += next + len(header)
		if tiff, had := tiffWithout(data[at:min(at+maxExif, len(data))]); had {
			found = true
			copy(data[at:], tiff)
		}
	}
	return found
}

// The limits of EXIF data in one file.
const (
	maxExif  = 64 << 10 // bytes, as in a JPEG
	maxExifs = 32       // of one kind
)

// blank overwrites a text.
func blank(text []byte) {
	for i := range text {
		text[i] = ' '
	}
}

func hasPrefix(b []byte, s string) bool { return bytes.HasPrefix(b, []byte(s)) }

// namesPlace reports whether XMP data may name a place.
func namesPlace(xmp []byte) bool {
	return hasPrefix(xmp, xmpMore) || bytes.Contains(xmp, []byte("GPS")) ||
		bytes.Contains(xmp, []byte("Location")) || bytes.Contains(xmp, []byte("photoshop:City"))
}
