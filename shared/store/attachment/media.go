package attachment

import (
	"bytes"
	"strings"
)

// media are the beginnings of audio and video files: of those that Gemini reads, with their types, and of others, with
// what they are.
var media = []struct{ begins, mime, is string }{
	{"ID3", "audio/mp3", ""},
	{"fLaC", "audio/flac", ""},
	{"\x00\x00\x01\xba", "video/mpeg", ""},
	{"\x00\x00\x01\xb3", "video/mpeg", ""},
	{"FLV\x01", "", "a Flash video"},
	{"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "", "a Windows Media file"},
	{"FORM", "", "an AIFF sound, or another IFF file"},
	{"#!AMR", "", "an AMR recording"},
	{"MThd", "", "a MIDI file"},
	{"G@\x00", "", "an MPEG transport stream"},
}

// mediaOf returns the MIME type of an audio or video file that Gemini reads. Otherwise it returns what the file is, or
// two empty texts if it is no such file.
func mediaOf(data []byte) (mime, instead string) {
	head := string(data[:min(len(data), mediaWithin)])
	for _, m := range media {
		if strings.HasPrefix(head, m.begins) {
			return m.mime, m.is
		}
	}
	switch {
	case len(head) >= 12 && head[:4] == "RIFF" && head[8:12] == "WAVE":
		return "audio/wav", ""
	case len(head) >= 12 && head[:4] == "RIFF" && head[8:12] == "AVI ":
		return "", "an AVI video"
	case strings.HasPrefix(head, "OggS"):
		return oggOf(head)
	case strings.HasPrefix(head, "\x1a\x45\xdf\xa3"):
		return matroskaOf(head)
	case isMPEGAudio(head, 1):
		return "audio/mp3", ""
	case isMPEGAudio(head, 0):
		return "audio/aac", ""
	}
	return "", ""
}

// mediaWithin is the number of bytes in which a file names the codings of its tracks.
const mediaWithin = 4096

// isMPEGAudio reports whether the data begin with a frame of MPEG audio. The layer is 1 for MP3, and 0 for AAC in ADTS
// frames.
func isMPEGAudio(head string, layer byte) bool {
	if len(head) < 3 || head[0] != 0xff || head[1]&0xe0 != 0xe0 || head[1]>>1&3 != layer {
		return false
	}
	version := head[1] >> 3 & 3
	if layer == 0 {
		return version&2 == 2 && head[2]>>2&0xf < 13 // a known sample rate
	}
	return version != 1 && head[2]>>4 != 0xf && head[2]>>2&3 != 3
}

func oggOf(head string) (mime, instead string) {
	has := func(coding string) bool { return strings.Contains(head, coding) }
	if !has("\x80theora") && (has("OpusHead") || has("\x01vorbis") || has("\x7fFLAC")) {
		return "audio/ogg", ""
	}
	return "", "an Ogg video, or an Ogg file with an unknown coding"
}

func matroskaOf(head string) (mime, instead string) {
	switch {
	case !strings.Contains(head[:min(len(head), 64)], "webm"):
		return "", "a Matroska video"
	case !strings.Contains(head, "V_") && strings.Contains(head, "A_"):
		return "audio/webm", ""
	}
	return "video/webm", ""
}

// movieOf returns the type of a file in the ISO base media format with a major brand that is no picture's.
func movieOf(major string, data []byte) (mime, instead string) {
	switch {
	case major == "M4A " || major == "M4B ":
		return "audio/mp4", ""
	case major == "qt  ":
		return "video/quicktime", ""
	case strings.HasPrefix(major, "3gp"):
		return "video/3gpp", ""
	case !movies[major]:
		return "", "a video, or another media file"
	case hasTrack(data, "soun") && !hasTrack(data, "vide"):
		return "audio/mp4", ""
	}
	return "video/mp4", ""
}

// movies are the brands of MP4 files.
var movies = map[string]bool{"isom": true, "iso2": true, "iso3": true, "iso4": true, "iso5": true, "iso6": true,
	"mp41": true, "mp42": true, "avc1": true, "M4V ": true, "MSNV": true, "dash": true, "mmp4": true, "f4v ": true}

// hasTrack reports whether the file has a track with the handler, such as vide.
func hasTrack(data []byte, handler string) bool {
	const header = "hdlr"
	for at := 0; ; {
		next := bytes.Index(data[at:], []byte(header))
		if next < 0 {
			return false
		}
		at += next + len(header)
		if rest := data[at:]; len(rest) >= 12 && string(rest[8:12]) == handler { // after version, flags and a type
			return true
		}
	}
}
