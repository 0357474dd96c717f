package demomodel

import (
	"regexp"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// sameTo returns the earlier e-mail with other recipients.
func (f *follow) sameTo() ([]*ask, bool) {
	a, _ := lastOf[*mailArgs](f.before)
	who := f.slots["who"]
	switch {
	case a == nil && f.tool(mailTool) != nil:
		return f.asking("I know of no mail before that. Please say the whole mail.")
	case a == nil:
		return nil, false
	case len(who.addresses()) == 0:
		return f.asking(addressOf(who.raw))
	case remains(beside.ReplaceAllString(who.mask, "")):
		return f.asking(unread(who.raw))
	}
	return []*ask{f.changed(a, func(s *since) { s.people, s.cc, s.bcc = who.addresses(), nil, nil })}, true
}

// readdressed returns the e-mail with other recipients, in place of the earlier one.
func (f *follow) readdressed() ([]*ask, bool) {
	a, _ := lastOf[*mailArgs](f.before)
	who := f.slots["who"]
	if a == nil || len(who.addresses()) == 0 || remains(beside.ReplaceAllString(who.mask, "")) {
		return nil, false
	}
	return f.again(a, func(s *since) { s.people, s.cc, s.bcc = who.addresses(), nil, nil }), true
}

// copied returns the earlier e-mail with additional recipients of a copy.
func (f *follow) copied() ([]*ask, bool) {
	a, _ := lastOf[*mailArgs](f.before)
	if a == nil {
		return nil, false
	}
	return f.again(a, func(s *since) {
		s.cc = append(slices.Clone(s.cc), f.slots["cc"].addresses()...)
		s.bcc = append(slices.Clone(s.bcc), f.slots["bcc"].addresses()...)
	}), true
}

// reworded returns the previous e-mail with another text, or with one word replaced: “say eleven, not ten”.
func (f *follow) reworded() ([]*ask, bool) {
	a, m := lastOf[*mailArgs](f.before)
	if a == nil {
		return nil, false
	}
	if words := notThat.FindStringSubmatch(f.slots["body"].raw); words != nil {
		old := regexp.MustCompile(`(?i)\b`+regexp.QuoteMeta(words[2])+`\b`).FindAllStringIndex(m.Body, -1)
		if len(old) != 1 {
			return f.asking(unread(f.slots["body"].raw))
		}
		return f.again(a, func(s *since) { s.body = m.Body[:old[0][0]] + words[1] + m.Body[old[0][1]:] }), true
	}
	return f.again(a, func(s *since) {
		s.body = toDo.ReplaceAllString(endsInstead.ReplaceAllString(f.slots["body"].raw, ""), "Please ")
	}), true
}

// retimed returns the earlier e-mail with another time in its text, if the text has one time and the new words another.
func (f *follow) retimed(what text) ([]*ask, bool) {
	a, m := lastOf[*mailArgs](f.before)
	if a == nil {
		return nil, false
	}
	said, now := theClock(read(m.Body)), theClock(what)
	if now == nil { // a number alone
		what = read("at " + strings.TrimSpace(bareTo.ReplaceAllString(what.raw, "")))
		now = theClock(what)
	}
	if said == nil || now == nil || remains(what.blank(now[0], now[1]).mask) {
		return nil, false
	}
	return f.again(a, func(s *since) {
		s.body = m.Body[:said[0]] + what.raw[now[0]:now[1]] + m.Body[said[1]:]
	}), true
}

// theClock returns the position of the only time in a text.
func theClock(t text) []int {
	all := clocks.FindAllStringSubmatchIndex(t.mask, maxTimes)
	if len(all) != 1 {
		return nil
	}
	return []int{max(all[0][2], all[0][4]), max(all[0][3], all[0][5])}
}

var (
	endsInstead = lazyregexp.New(`(?i)[\s,]+instead[\s.!]*$`)
	notThat     = lazyregexp.New(`(?i)^([^\s,]+(?:\s+[^\s,]+)?),\s+(?:and\s+)?not\s+([\pL\pN:.]+(?:\s+[\pL\pN:.]+)?)$`)
	toDo        = lazyregexp.New(`^(?i:to)\s+`) // “tell him to bring cake”
)

// extended returns the earlier e-mail with one more sentence.
func (f *follow) extended() ([]*ask, bool) {
	a, m := lastOf[*mailArgs](f.before)
	if a == nil {
		return nil, false
	}
	more := &mailArgs{}
	more.write(f.slots["body"])
	return f.again(a, func(s *since) { s.name, s.body = m.Subject, m.Body+" "+more.Body }), true
}
