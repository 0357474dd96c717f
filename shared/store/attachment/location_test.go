package attachment_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/store/attachment"
)

// place is what the pictures of these tests name as their place.
const place = "CANARY-latitude"

// exif returns EXIF data with a camera, a GPS directory, and a value of that directory behind it.
func exif(order binary.AppendByteOrder) string {
	b := []byte("MM\x00*")
	if order == binary.LittleEndian {
		b = []byte("II*\x00")
	}
	entry := func(b []byte, tag, kind uint16, count, value uint32) []byte {
		b = order.AppendUint16(order.AppendUint16(b, tag), kind)
		return order.AppendUint32(order.AppendUint32(b, count), value)
	}
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 2)
	b = entry(b, 0x010f, 2, 4, 0x41424300) // the camera's maker
	b = entry(b, 0x8825, 4, 1, 38)
	b = order.AppendUint32(b, 0)
	b = order.AppendUint16(b, 1)
	b = entry(b, 2, 2, uint32(len(place)), 56)
	b = order.AppendUint32(b, 0)
	return string(b) + place
}

const xmp = `<x:xmpmeta xmlns:x="adobe:ns:meta/"><a exif:GPSLatitude="` + place + `"/></x:xmpmeta>`

// app1 returns a JPEG with a segment before its own.
func app1(jpg, body string) string {
	return jpg[:2] + "\xff\xe1" + string(binary.BigEndian.AppendUint16(nil, uint16(len(body)+2))) + body + jpg[2:]
}

// afterHeader returns a PNG with a chunk after its first one.
func afterHeader(png, kind, body string) string {
	chunk := kind + body
	size := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(chunk)))
	return png[:33] + string(size) + chunk + string(sum) + png[33:]
}

// TestPlaceOfPicture checks that pictures lose the place, and nothing that a reader of the picture needs.
func TestPlaceOfPicture(t *testing.T) {
	jpg, png, little := encoded(t, true), encoded(t, false), exif(binary.LittleEndian)
	for name, data := range map[string]string{
		"a JPEG":                app1(jpg, "Exif\x00\x00"+little),
		"a big-endian one":      app1(jpg, "Exif\x00\x00"+exif(binary.BigEndian)),
		"XMP":                   app1(jpg, "http://ns.adobe.com/xap/1.0/\x00"+xmp),
		"XMP behind EXIF":       app1(app1(jpg, "http://ns.adobe.com/xap/1.0/\x00"+xmp), "Exif\x00\x00"+little),
		"a picture behind it":   jpg + app1(jpg, "Exif\x00\x00"+little),
		"a directory cut short": app1(jpg, "Exif\x00\x00"+little[:38]+"\xff\xff"+place),
		"a PNG":                 afterHeader(png, "eXIf", little),
		"a PNG's XMP":           afterHeader(png, "iTXt", "XML:com.adobe.xmp\x00\x00\x00\x00\x00"+xmp),
		"a PNG's old EXIF":      afterHeader(png, "tEXt", "Raw profile type exif\x00"+place),
		"a WebP":                webp("EXIF", little),
		"a WebP's XMP":          webp("XMP ", xmp),
		"a HEIC":                heic("Exif\x00\x00" + little),
		"a HEIC without header": heic("\x00\x00\x00\x00" + little),
		"a HEIC's XMP":          heic(xmp),
	} {
		f, err := attachment.New("x", []byte(data))
		if err != nil || !f.LocationRemoved || bytes.Contains(f.Data, []byte("CANARY")) {
			t.Errorf("%s: %v, removed: %v, %q", name, err, f.LocationRemoved, f.Data)
			continue
		}
		if strings.HasPrefix(f.Type, "image/webp") || strings.HasPrefix(f.Type, "image/hei") {
			if len(f.Data) != len(data) {
				t.Errorf("%s: %d bytes, not %d", name, len(f.Data), len(data))
			}
		} else if _, _, err := image.Decode(bytes.NewReader(f.Data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		again, err := attachment.New("x", f.Data)
		if err != nil || again.LocationRemoved || !bytes.Equal(again.Data, f.Data) {
			t.Errorf("%s: it changes again: %v", name, err)
		}
	}
}

// webp returns a WebP with a chunk behind its header.
func webp(kind, data string) string {
	body := "WEBPVP8X\x0a\x00\x00\x00" + strings.Repeat("\x00", 10) + kind +
		string(binary.LittleEndian.AppendUint32(nil, uint32(len(data)))) + data + strings.Repeat("\x00", len(data)%2)
	return "RIFF" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(body)))) + body
}

// heic returns a HEIC with the bytes.
func heic(data string) string {
	return "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00heicmif1" + "\x00\x00\x00\x00mdat" + data
}

// TestFileWithoutPlaceUnchanged checks that other files keep every byte, also those that break off or lie about their
// sizes.
func TestFileWithoutPlaceUnchanged(t *testing.T) {
	jpg, png, little := encoded(t, true), encoded(t, false), exif(binary.LittleEndian)
	loop := []byte(little)
	binary.LittleEndian.PutUint16(loop[22:], 0x0110) // no GPS directory
	binary.LittleEndian.PutUint32(loop[34:], 8)      // the next directory is the first
	for name, data := range map[string]string{
		"a JPEG": jpg, "a PNG": png, "text": "Exif\x00\x00"[:4] + " is a word",
		"a directory that follows itself": app1(jpg, "Exif\x00\x00"+string(loop)),
		"a segment beyond the end":        jpg[:2] + "\xff\xe1\xff\xffExif\x00\x00",
		"only a marker":                   "\xff\xd8\xff\xe1",
		"an empty segment":                jpg[:2] + "\xff\xe1\x00\x00" + jpg[2:],
		"a chunk beyond the end":          png[:33] + "\xff\xff\xff\xffeXIf" + png[33:],
		"a WebP's chunk beyond it":        webp("EXIF", little)[:60],
		"a PNG's other text":              afterHeader(png, "tEXt", "Comment\x00GPS"),
		"EXIF without a place":            app1(jpg, "Exif\x00\x00II*\x00\x08\x00\x00\x00\x00\x00"),
		"a HEIC":                          heic("pixels"),
	} {
		f, err := attachment.New("x", []byte(data))
		if err != nil || f.LocationRemoved || string(f.Data) != data {
			t.Errorf("%s: %v, removed: %v, %q", name, err, f.LocationRemoved, f.Data)
		}
	}
}

// FuzzLocation checks that no picture can crash the removal, grow, or keep a place that a second removal finds.
func FuzzLocation(f *testing.F) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		f.Add([]byte(app1("\xff\xd8\xff\xd9", "Exif\x00\x00"+exif(order))))
		f.Add([]byte(webp("EXIF", exif(order))))
		f.Add([]byte(heic("Exif\x00\x00" + exif(order) + xmp)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := attachment.New("x", data)
		if err != nil {
			return
		}
		second, err := attachment.New("x", first.Data)
		if len(first.Data) > len(data) || err == nil && second.LocationRemoved {
			t.Fatalf("%d bytes became %d; removed again: %v", len(data), len(first.Data), second.LocationRemoved)
		}
	})
}
