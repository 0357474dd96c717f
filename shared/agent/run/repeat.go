package run

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// An Effect is a call that may repeat another one.
type Effect struct {
	UID, Tool string
	Place     tool.Place
	Args      json.RawMessage
	ArgsHash  string // see [ArgsHash]
}

// EffectOf returns the effect of one of the user's actions.
func EffectOf(uid string, a *Action) Effect { return Effect{uid, a.Tool, a.Place, a.Args, a.ArgsHash} }

// likeness returns a digest that the effect shares with those that read alike: their texts differ at most in white
// space, capitals, quotation marks and dashes, in invisible characters, or in how letters and instants are encoded. The
// order of a list of texts, such as recipients, and the time zone in which instants are shown do not count.
func (e Effect) likeness() string {
	args := string(alike(e.Args))
	if instant.MatchString(args) {
		args = shownIn.ReplaceAllString(args, "")
	}
	return digest(e.UID, e.Tool, e.Place.ID, ordered(args))
}

var (
	instant = lazyregexp.New(`"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"`)
	shownIn = lazyregexp.New(`,"timezone":"[^"\\]*"|"timezone":"[^"\\]*",?`)
	texts   = lazyregexp.New(`\["(?:[^"\\]|\\.)*"(?:,"(?:[^"\\]|\\.)*")+\]`)
)

// ordered returns canonical JSON with each list of texts in alphabetical order.
func ordered(canonical string) string {
	if !strings.Contains(canonical, `["`) {
		return canonical
	}
	return texts.ReplaceAllStringFunc(canonical, func(list string) string {
		var all []string
		if json.Unmarshal([]byte(list), &all) != nil {
			return list
		}
		slices.Sort(all)
		return strings.Join(all, "\x00")
	})
}

// alike returns canonical JSON with the normal form of each text.
func alike(canonical json.RawMessage) []byte {
	out := make([]byte, 0, len(canonical))
	for rest := []byte(canonical); len(rest) > 0; {
		start := bytes.IndexByte(rest, '"')
		if start < 0 {
			return append(out, rest...)
		}
		out = append(out, rest[:start+1]...)
		rest = rest[start+1:]
		end := 0
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end, len(rest))
		text := rest[:end]
		if !norm.NFKC.IsNormal(text) {
			text = norm.NFKC.Bytes(text)
		}
		out = appendAlike(out, text)
		rest = rest[end:]
		if len(rest) > 0 {
			out, rest = append(out, '"'), rest[1:]
		}
	}
	return out
}

// appendAlike appends the normal form of a text, which is written as in canonical JSON.
func appendAlike(out, text []byte) []byte {
	if len(text) >= len("2006-01-02T15:04:05Z") && text[10] == 'T' {
		if at, err := time.Parse(time.RFC3339, string(text)); err == nil {
			return at.UTC().AppendFormat(out, time.RFC3339Nano)
		}
	}
	start, space := len(out), false
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		part := text[i : i+size]
		if r == '\\' && i+1 < len(text) {
			r, part = ' ', text[i:i+2] // an escape is white space or a control character, except for these two
			if c := text[i+1]; c == '"' || c == '\\' {
				r = rune(c)
			} else if c == 'u' {
				part = text[i:min(i+6, len(text))]
			}
		}
		i += len(part)
		switch {
		case unicode.IsSpace(r):
			space = true
		case !visible.Dangerous(r):
			if space && len(out) > start {
				out = append(out, ' ')
			}
			if space = false; part[0] == '\\' && r != '"' {
				out = append(out, part...)
			} else {
				out = utf8.AppendRune(out, usual(r))
			}
		}
	}
	return out
}

// usual returns the small letter of a letter, the same dash for all dashes, and the apostrophe for quotation marks.
func usual(r rune) rune {
	switch {
	case unicode.Is(unicode.Pd, r), r == '\u2212': // the minus sign
		return '-'
	case unicode.In(r, unicode.Pi, unicode.Pf), strings.ContainsRune("\"‚„´`\u2032\u2033", r):
		return '\''
	}
	return unicode.ToLower(r)
}

// An Allowed is an effect that a user allowed recently, by approval or in advance. It is in the user's document, so
// another run of the same conversation can recognise an equal call.
type Allowed struct {
	Key      string    `json:"key"` // digest of the conversation and the arguments, and that of their likeness
	ActionID string    `json:"actionId"`
	At       time.Time `json:"at"`
}

// NewAllowed returns the entry for an action whose effect is allowed at now.
func NewAllowed(threadID, actionID string, e Effect, now time.Time) Allowed {
	return Allowed{allowedKey(threadID, e.ArgsHash) + allowedKey(threadID, e.likeness()), actionID, now}
}

func allowedKey(threadID, argsHash string) string { return digest("allowed", threadID, argsHash)[:22] }

// Limits for the allowed effects in a user's document.
const (
	allowedFor = time.Hour
	maxAllowed = 20
)

// NoteAllowed adds e and drops effects older than an hour. It keeps at most 20.
func (u *User) NoteAllowed(e Allowed) {
	u.ForgetAllowed(e.ActionID)
	kept := slices.DeleteFunc(slices.Clone(u.Recent), func(old Allowed) bool { return !old.counts(e.At) })
	u.Recent = append(kept, e)
	u.Recent = u.Recent[max(0, len(u.Recent)-maxAllowed):]
}

// ForgetAllowed drops the entry of an action that had no effect, and reports whether there was one.
func (u *User) ForgetAllowed(actionID string) bool {
	kept := slices.DeleteFunc(slices.Clone(u.Recent), func(e Allowed) bool { return e.ActionID == actionID })
	had := len(kept) < len(u.Recent)
	u.Recent = kept
	return had
}

// AllowedIn returns the newest effect, equal to e or alike, that the user allowed in the conversation within the last
// hour, in a run other than that of s. It also reports whether that effect is equal to e.
func (u *User) AllowedIn(threadID string, e Effect, s *State, now time.Time) (newest *Allowed, equal bool) {
	key, like := allowedKey(threadID, e.ArgsHash), ""
	for i := range u.Recent {
		old := &u.Recent[i]
		if s.Action(old.ActionID) != nil || !old.counts(now) {
			continue
		}
		if like == "" {
			like = allowedKey(threadID, e.likeness())
		}
		if same := strings.HasPrefix(old.Key, key); same || strings.HasSuffix(old.Key, like) {
			newest, equal = old, same
		}
	}
	return newest, equal
}

func (e Allowed) counts(now time.Time) bool { return now.Sub(e.At) < allowedFor }

// Twin returns another effect of the run that is equal to e or alike, or nil. It prefers one that was done or may have
// been. Otherwise it returns an effect that the run proposed before the action and that is waiting or allowed. A new
// attempt at a call is not a twin of the earlier attempt.
func Twin(s *State, actionID string, e Effect) (twin *Action) {
	own, before := s.Action(actionID), true
	for _, a := range s.Actions {
		if a.ID == actionID {
			before = false
			continue
		}
		if !a.SideEffect || own != nil && a.Turn == own.Turn && a.Index == own.Index || !e.repeats(a) {
			continue
		}
		switch {
		case a.Status == ActionCompleted, a.Status == ActionExecuting, a.Execution == UnknownState:
			twin = a
		case before && !a.Terminal() && twin == nil:
			twin = a
		}
	}
	return twin
}

// repeats reports whether the effect is equal to an action's or alike.
func (e Effect) repeats(a *Action) bool {
	return a.ArgsHash == e.ArgsHash ||
		a.Tool == e.Tool && a.Place == e.Place && EffectOf(e.UID, a).likeness() == e.likeness()
}
