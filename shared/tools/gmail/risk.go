package gmail

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// programs are the ends of names that Windows, macOS or Android run when somebody opens the file, as Gmail lists them
// ("File types blocked in Gmail"), and those of scripts.
var programs = strings.Fields("ade adp apk app appx appxbundle bat cab chm cmd com command cpl diagcab dll dmg ex " +
	"ex_ exe hta img ins iso isp jar jnlp js jse lib lnk mde mjs msc msi msix msixbundle msp mst nsh pif ps1 psm1 " +
	"reg scr sct sh shb sys url vb vbe vbs vhd vhdx vxd wsc wsf wsh xll")

// macros are the ends of the names of Office documents with macros.
var macros = strings.Fields("docm dotm xlsm xltm xlsb xlam pptm potm ppsm ppam sldm")

// begins are the first bytes of programs.
var begins = []string{"MZ", "\x7fELF", "\xfe\xed\xfa\xce", "\xfe\xed\xfa\xcf", "\xce\xfa\xed\xfe", "\xcf\xfa\xed\xfe",
	"\xca\xfe\xba\xbe", "#!", "dex\n", "L\x00\x00\x00\x01\x14\x02\x00"}

// riskOf says why a file may harm its recipients, or "". It looks at the name and at the content, because either can
// hide what the file is.
func riskOf(name string, data []byte) string {
	end := strings.ToLower(strings.TrimPrefix(path.Ext(strings.TrimRight(name, ". ")), "."))
	switch {
	case slices.Contains(programs, end),
		slices.ContainsFunc(begins, func(b string) bool { return bytes.HasPrefix(data, []byte(b)) }):
		return "is a program: opening it runs it"
	case slices.Contains(macros, end), isOldOffice(data) && bytes.Contains(data, []byte("_\x00V\x00B\x00A\x00_\x00")):
		return "is an Office document with macros: they are programs"
	case end == "html" || end == "htm" || end == "svg" || end == "xhtml" || end == "shtml":
		return "is a web page: it can run scripts and imitate a sign-in"
	}
	return riskInside(data)
}

func isOldOffice(data []byte) bool {
	return bytes.HasPrefix(data, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"))
}

// entry begins the description of a file in the directory of a ZIP archive.
const entry = "PK\x01\x02"

// riskInside looks at the names of the files in a ZIP archive, wherever the archive begins in the data. It inflates
// nothing.
func riskInside(data []byte) string {
	found := false
	for at := 0; ; {
		next := bytes.Index(data[at:], []byte(entry))
		if next < 0 || at+next+46 > len(data) {
			break
		}
		at += next + len(entry)
		found = true
		head, rest := data[at-len(entry):], data[at-len(entry)+46:]
		name := string(rest[:min(len(rest), int(head[28])|int(head[29])<<8)])
		name = strings.ToLower(path.Base(strings.ReplaceAll(name, `\`, "/")))
		switch {
		case name == "vbaproject.bin":
			return "is an Office document with macros: they are programs"
		case head[8]&1 != 0:
			return "is an encrypted archive: no scanner sees its files"
		case slices.Contains(programs, strings.TrimPrefix(path.Ext(name), ".")) && !strings.HasPrefix(name, "."):
			return "is an archive with a program in it"
		}
	}
	if found {
		return ""
	}
	return riskOfArchive(data)
}

// riskOfArchive names archives whose contents are not looked at.
func riskOfArchive(data []byte) string {
	for _, b := range []string{"Rar!\x1a\x07", "7z\xbc\xaf\x27\x1c", "PK\x03\x04"} {
		if bytes.HasPrefix(data, []byte(b)) {
			return "is an archive whose contents were not looked at"
		}
	}
	return ""
}
