package hostile

import (
	"fmt"
	"regexp"
	"strings"
)

// reason checks that an error of the right class is about the case's subject. A request that is refused because a field
// has the wrong type proves nothing about the check behind it.
func reason(c Case, g got) (wrong []string) {
	due := c.Expect
	if due.Code != "" && g.code != due.Code {
		wrong = append(wrong, fmt.Sprintf("code %s, want %s", g.code, due.Code))
	}
	if !strings.HasPrefix(g.field, due.Field) {
		wrong = append(wrong, fmt.Sprintf("field %q, want %q", g.field, due.Field))
	}
	if !strings.Contains(g.message, due.Says) {
		wrong = append(wrong, fmt.Sprintf("it says %q, want %q", g.message, due.Says))
	}
	for _, s := range shapes {
		if due.Says == "" && g.class == "ValidationError" && s.said.MatchString(g.message) &&
			!s.about.MatchString(due.Note) {
			wrong = append(wrong, fmt.Sprintf("refused for another reason: %s: %s", g.field, g.message))
		}
	}
	return wrong
}

// shapes pairs refusals of an input's form with the words that mark a case as being about that form.
var shapes = []struct{ said, about *regexp.Regexp }{
	{regexp.MustCompile(`must be (a text|a number|a whole number|true or false|a list|an object|a value of another type)(?:$|[^a-z ]| or )|each entry must be`),
		regexp.MustCompile(`(?i)\b(type|strings?|numbers?|arrays?|objects?|lists?|null|bool(ean)?|integer|fraction|coercion|coerced|scalar|quoted|decimal)\b`)},
	{regexp.MustCompile(`a JSON object is required|must be a JSON object`),
		regexp.MustCompile(`(?i)\b(null|strings?|numbers?|arrays?|objects?|scalar|true|bare|top[- ]level|JSON|mark|empty|body)\b`)},
	{regexp.MustCompile(`^required: |(message|prompt|description|title|recipient) is required|nothing was sent|too few`),
		regexp.MustCompile(`(?i)\b(missing|absent|empty|without|no|needs?|never defaults|required|blank|whitespace|zero[- ]width|invisible|bulk|left out|only|validation|invalid)\b`)},
	{regexp.MustCompile(`unknown field|not known`),
		regexp.MustCompile(`(?i)(unknown|argument|extra|identity|bulk|header map|never|not a field|case[- ]variant|CRLF|fold|smuggl|misspelt|proto|field of)`)},
	{regexp.MustCompile(`not valid JSON`),
		regexp.MustCompile(`(?i)(JSON|quote|UTF|surrogate|byte|mark|comma|comment|NaN|infinity|trailing|truncat|cut|zero|escape|syntax|control|number)`)},
	{regexp.MustCompile(`not one of the values|must be one of`),
		regexp.MustCompile(`(?i)(enum|case|missing|unknown|word|value|default|spelling|space|decision|another|list|synonym)`)},
}
