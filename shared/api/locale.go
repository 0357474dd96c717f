package api

import (
	"golang.org/x/text/language"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/timezone"
)

// localeBody has a request's fields for the user's locale and time zone. Clients send what their browser reports.
type localeBody struct {
	TimeZone *string `json:"timeZone"`
	Locale   *string `json:"locale"`
}

// maxLocale is the maximum length of a locale, in bytes.
const maxLocale = 64

// tagged matches a BCP 47 language with a script, a region and further subtags. It excludes POSIX locales
// (de_DE.UTF-8), which the parser would accept.
var tagged = lazyregexp.New(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$`)

// locale validates the fields. A field that is absent or null becomes empty, and so does a time zone that browsers
// report but this server does not know.
func (b localeBody) locale() (r run.Locale, err error) {
	if b.TimeZone != nil && !timezone.Reported(*b.TimeZone) {
		if _, err := timezone.Load("timeZone", *b.TimeZone); err != nil {
			return r, err
		}
		r.TimeZone = *b.TimeZone
	}
	if b.Locale != nil {
		if r.Language, err = canonicalLocale(*b.Locale); err != nil {
			return r, err
		}
	}
	return r, nil
}

func canonicalLocale(s string) (string, error) {
	wrong := fault.Invalid("locale", "must be a BCP 47 language tag, such as de or pt-BR")
	if len(s) > maxLocale || !tagged.MatchString(s) {
		return "", wrong
	}
	tag, err := language.Parse(s)
	if err != nil || tag.IsRoot() {
		return "", wrong
	}
	return tag.String(), nil
}
