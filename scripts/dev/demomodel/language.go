package demomodel

import (
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

var (
	otherScript = lazyregexp.New(`[\p{Cyrillic}\p{Greek}\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Arabic}` +
		`\p{Hebrew}\p{Devanagari}\p{Thai}]`)
	latin      = lazyregexp.New(`\p{Latin}`)
	otherWords = lazyregexp.New(`(?i)^(?:ich|du|wir|sie|er|es|bitte|und|der|die|das|dass|den|dem|ein|eine|einen|` +
		`mir|mich|mit|morgen|heute|um|uhr|kannst|könntest|kann|können|wie|wann|schick|schicke|schicken|sende|senden|` +
		`schreib|schreibe|schreiben|nachricht|termin|trage|lade|mein|meine|meinen|ist|habe|was|wer|nicht|zum|von|für|` +
		`je|moi|tu|vous|le|la|les|une|un|des|avec|pour|demain|peux|envoie|envoyer|envoyez|écris|écrire|que|réunion|à|` +
		`est|et|quoi|` +
		`el|los|las|una|en|con|mañana|por|favor|quiero|puedes|tengo|envía|enviar|manda|mandar|reunión|correo|calendario|` +
		`qué|y|para|crea|` +
		`il|lo|domani|invia|alle|riunione|di|che|per|o|uma|amanhã|reunião|às|envie|` +
		`een|het|stuur|morgenochtend|vergadering|naar|met|op|alstublieft)$`)
	englishWords = lazyregexp.New(`(?i)^(?:the|to|at|tomorrow|today|with|that|saying|send|email|mail|schedule|put|` +
		`book|my|calendar|in|on|and|please|is|are|what|how|you|meeting|lunch|for|of|it|tell|write|call|from|event|about)$`)
	behindSaying = lazyregexp.New(`(?i)\b(?:that|saying|says?|titled|called|about|subject)\b|:\s`)
)

const englishOnly = "I'm Countersign's offline demo model and understand English only, so I did nothing."

// foreign reports whether a request is in a language other than English. The text to write can be in any language.
func foreign(t text) bool {
	head := t.mask
	if at := behindSaying.FindStringIndex(head); at != nil {
		head = head[:at[0]]
	}
	if others := len(otherScript.FindAllString(head, -1)); others > 0 {
		return others > len(latin.FindAllString(anAddress.ReplaceAllString(head, ""), -1))
	}
	others, english := 0, 0
	for _, word := range strings.Fields(anAddress.ReplaceAllString(head, "")) {
		word = strings.Trim(word, ",.;:!?¿¡()\x01\"'“”")
		switch {
		case englishWords.MatchString(word):
			english++
		case otherWords.MatchString(word):
			others++
		}
	}
	return others >= 2 && others > english
}
