package mailtext

import "strings"

// Unflow joins the lines of a paragraph in the format flowed (RFC 3676). With delSp, the space that marks a joined line
// is not part of the text.
func Unflow(text string, delSp bool) string {
	var out strings.Builder
	flows, before := false, 0 // whether the next line continues this one, and how deep this one is quoted
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		depth := quotedBy(line)
		line = strings.TrimPrefix(line[depth:], " ") // a stuffed space
		switch {
		case flows && depth == before && line != "-- ":
		default:
			if i > 0 {
				out.WriteByte('\n')
			}
			out.WriteString(strings.Repeat(">", depth))
			if depth > 0 && line != "" {
				out.WriteByte(' ')
			}
		}
		flows, before = strings.HasSuffix(line, " ") && line != "-- ", depth
		if flows && delSp {
			line = line[:len(line)-1]
		}
		out.WriteString(line)
	}
	return out.String()
}

// quotedBy returns the number of quotation marks at the beginning of a line.
func quotedBy(line string) int { return len(line) - len(strings.TrimLeft(line, ">")) }
