package mailtext

import (
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// folded is the number of quoted lines above which a quotation is folded. A shorter one is usually what the next line
// answers.
const folded = 5

// Fold replaces each long quotation with a line that says how many lines were left out. With answers, the e-mail
// answers another one: a copy of that e-mail below a heading, as Outlook writes it, is a quotation too.
func Fold(text string, answers bool) string {
	lines := strings.Split(text, "\n")
	if answers {
		if at := copyAt(lines); at >= 0 {
			lines = append(lines[:at:at], leftOut(len(lines)-at))
		}
	}
	var out, run []string
	flush := func() {
		if n := len(run); n > folded {
			run = []string{leftOut(n)}
		}
		out, run = append(out, run...), nil
	}
	for _, line := range lines {
		if strings.HasPrefix(strings.TrimLeft(line, " "), ">") {
			run = append(run, line)
			continue
		}
		flush()
		out = append(out, line)
	}
	flush()
	return strings.Join(out, "\n")
}

func leftOut(n int) string { return fmt.Sprintf("> [… %d quoted lines left out …]", n) }

var (
	// separator matches the line above a copy of the answered e-mail.
	separator = lazyregexp.New(`^[\s*]*(?:-{2,}\s*(?:Original Message|Original Appointment|Ursprüngliche Nachricht|` +
		`Message d'origine|Mensaje original|Messaggio originale|Mensagem original|Oorspronkelijk bericht|` +
		`Исходное сообщение|原始邮件|元のメッセージ|Original Message from .{1,80})\s*-{2,}|_{20,}|(?:\* ?){3,})[\s*]*$`)
	// headings match the first two lines of the copy's headers, with or without Markdown's bold.
	headings = []*lazyregexp.Regexp{
		lazyregexp.New(`^[\s*]*(?:From|Von|De|Da|Van|От|发件人|差出人)[\s*]*[:：]`),
		lazyregexp.New(`(?m)^[\s*]*(?:Sent|Date|Gesendet|Datum|Envoyé|Enviado|Enviada|Inviato|Data|Verzonden|` +
			`Отправлено|发送时间|送信日時)[\s*]*[:：]`),
	}
)

// copyAt returns the line at which a copy of the answered e-mail begins, or -1.
func copyAt(lines []string) int {
	for i, line := range lines {
		at := i
		if separator.MatchString(line) {
			for at++; at < len(lines) && strings.TrimSpace(lines[at]) == ""; at++ {
			}
		}
		if at < len(lines) && headings[0].MatchString(lines[at]) &&
			headings[1].MatchString(strings.Join(lines[at:min(at+4, len(lines))], "\n")) {
			return i
		}
	}
	return -1
}
