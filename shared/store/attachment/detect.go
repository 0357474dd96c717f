package attachment

import (
	"bytes"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// MaxName is the length limit of a shown file name, in bytes.
const MaxName = 100

// New returns the file with its type, and a picture or movie without the place where it was taken. The content decides
// the type; the name does not. The error's field is name or data, and its message says what the content is instead.
func New(name string, data []byte) (File, error) {
	name = NameOf(name)
	if visible.Blank(name) {
		return File{}, fault.Invalid("name", "a file name is required")
	}
	mime, instead := typeOf(data)
	if mime == "" {
		return File{}, fault.Invalid("data", "%s; these are accepted: %s", instead, Accepted)
	}
	data, removed := withoutLocation(mime, data)
	return File{Name: name, Type: mime, Data: data, LocationRemoved: removed}, nil
}

// NameOf returns the shown name of a file, in one line. A name that is cut keeps its extension.
func NameOf(name string) string {
	name, _ = visible.Line(name)
	if ext := path.Ext(name); len(name) > MaxName && len(ext) <= maxExtension {
		return clip.Text(strings.TrimSuffix(name, ext), MaxName-len(ext)) + ext
	}
	return clip.Text(name, MaxName)
}

// maxExtension is the length limit of an extension that a cut name keeps.
const maxExtension = 10

// Generated returns a file that a model or a tool made, with its type. Its bytes stay as they are, because the model's
// signature may cover them. ok is false for a type that Gemini does not read.
func Generated(name string, data []byte) (f File, ok bool) {
	mime, _ := typeOf(data)
	return File{Name: name + extensions[mime], Type: mime, Data: data}, mime != ""
}

// extensions are the usual ends of the names of files that models make.
var extensions = map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp",
	"audio/wav": ".wav", "audio/mp3": ".mp3", "video/mp4": ".mp4", "application/pdf": ".pdf", "text/plain": ".txt"}

// Accepted names the types of files that Gemini reads, for people.
const Accepted = "PDF, PNG, JPEG, WebP, HEIC, MP4, MOV, 3GP, WebM, MPEG, MP3, WAV, AAC, M4A, Ogg, FLAC, " +
	"and text in UTF-8"

// refused are the beginnings of files that Gemini does not read, with what they are.
var refused = []struct{ begins, is string }{
	{"\xff\xfe", "text in UTF-16, which must be saved in UTF-8"},
	{"\xfe\xff", "text in UTF-16, which must be saved in UTF-8"},
	{"GIF8", "a GIF picture"},
	{"BM", "a BMP picture"},
	{"II*\x00", "a TIFF picture or a camera's raw file"},
	{"MM\x00*", "a TIFF picture or a camera's raw file"},
	{"\x00\x00\x00\x0cJXL ", "a JPEG XL picture"},
	{"\xff\x0a", "a JPEG XL picture"},
	{"\x00\x00\x00\x0cjP  ", "a JPEG 2000 picture"},
	{"PK\x03\x04", "a ZIP archive or an Office document"},
	{"PK\x05\x06", "a ZIP archive or an Office document"},
	{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document"},
	{"{\\rtf", "a rich text document"},
	{"\x1f\x8b", "a compressed file"},
	{"MZ", "a program"},
	{"\x7fELF", "a program"},
}

// typeOf returns the MIME type of a file that Gemini reads. Otherwise it returns what the content is.
func typeOf(data []byte) (mime, instead string) {
	if len(data) == 0 {
		return "", "an empty file"
	}
	switch found := http.DetectContentType(data); found {
	case "application/pdf", "image/png", "image/jpeg", "image/webp":
		return found, ""
	}
	if brands := brandsOf(data); len(brands) > 0 {
		return ofBrands(brands, data)
	}
	text := isText(data)
	if mime, instead := mediaOf(data); !text && mime+instead != "" {
		return mime, instead
	}
	if bytes.HasPrefix(bytes.TrimLeft(data, "\ufeff \t\r\n\f\x00"), []byte("%PDF-")) {
		return "application/pdf", ""
	}
	for _, r := range refused {
		short := len(r.begins) == 2 && r.begins[0] < utf8.RuneSelf // two letters also begin sentences
		if bytes.HasPrefix(data, []byte(r.begins)) && !(short && text) {
			return "", r.is
		}
	}
	switch {
	case text:
		return "text/plain", ""
	case isUTF16(data):
		return "", "text in UTF-16, which must be saved in UTF-8"
	case laterPDF.MatchString(string(data[:min(len(data), pdfWithin)])):
		return "application/pdf", ""
	case !utf8.Valid(data) && !slices.ContainsFunc(data, func(b byte) bool { return unprintable(rune(b)) }):
		return "", "text that is not in UTF-8, in which it must be saved"
	}
	return "", "a file of another type"
}

// pdfWithin is the number of bytes in which the header of a PDF begins (ISO 32000, implementation note 13). Some
// producers write other bytes before the header.
const pdfWithin = 1024

// laterPDF matches a PDF's header after other bytes. Text that mentions the header is text.
var laterPDF = lazyregexp.New(`%PDF-[12]\.\d`)

// brandsOf returns the brands of a file in the ISO base media format, its major brand first. Other files have none.
func brandsOf(data []byte) (brands []string) {
	if len(data) < 12 || string(data[4:8]) != "ftyp" {
		return nil
	}
	size := int(data[2])<<8 | int(data[3])
	end := len(data)
	if data[0] == 0 && data[1] == 0 && size >= 12 {
		end = min(end, size)
	}
	brands = append(brands, string(data[8:12]))
	for at := 16; at+4 <= end; at += 4 { // after the minor version
		brands = append(brands, string(data[at:at+4]))
	}
	return brands
}

// ofBrands returns the type of a file with these brands. A picture of the general brand mif1 may have any coding. Its
// other brands name the coding.
func ofBrands(brands []string, data []byte) (mime, instead string) {
	has := func(any ...string) bool {
		return slices.ContainsFunc(any, func(b string) bool { return slices.Contains(brands, b) })
	}
	switch major := brands[0]; {
	case strings.HasPrefix(major, "avi") || major == "mif1" && has("avif", "avis"):
		return "", "an AVIF picture"
	case slices.Contains([]string{"heic", "heix", "heim", "heis"}, major), major == "mif1" && has("heic", "heix"):
		return "image/heic", ""
	case major == "mif1":
		return "image/heif", ""
	case slices.Contains([]string{"hevc", "hevx", "msf1"}, major):
		return "", "a sequence of HEIC pictures"
	}
	return movieOf(brands[0], data)
}

// isUTF16 reports whether the data are text in UTF-16 without a byte order mark, mostly of ASCII characters.
func isUTF16(data []byte) bool {
	head := data[:min(len(data), 1024)&^1]
	var zeros [2]int
	for i, b := range head {
		if b == 0 {
			zeros[i%2]++
		}
	}
	return len(head) > 0 && min(zeros[0], zeros[1]) == 0 && max(zeros[0], zeros[1]) > len(head)/2*3/4
}

// isText reports whether the data are text in UTF-8.
func isText(data []byte) bool { return utf8.Valid(data) && bytes.IndexFunc(data, unprintable) < 0 }

// unprintable reports whether text files do not contain the character.
func unprintable(r rune) bool {
	return r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\f' && r != '\x1b' || r == 0x7f
}
