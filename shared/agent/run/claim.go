package run

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// spoofsSummary reports whether a model's text could be mistaken for the server's own summary. It looks for the
// first words of such summaries, in any spacing and with hidden characters, and for words that mix letters of several
// scripts.
func spoofsSummary(text string) bool {
	words := plainWords(text)
	return strings.Contains(words, "on record") || strings.Contains(words, strings.ToLower(unanswered)) ||
		len(visible.Suspicious(words)) > 0
}

// plainWords returns the text in lower case, with hidden characters removed and runs of white space reduced to one
// space.
func plainWords(text string) string {
	plain := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && visible.Dangerous(r) {
			return -1
		}
		return r
	}, norm.NFKC.String(text))
	return strings.Join(strings.Fields(strings.ToLower(plain)), " ")
}

// imitates reports whether a line of the model's text looks like the server's own sentence about an effect, with a
// quoted title, but is not one of the sentences in done.
func imitates(text string, done []string) bool {
	return slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
		line = strings.TrimLeftFunc(line, func(r rune) bool { return !unicode.IsLetter(r) })
		return strings.Contains(line, "“") && !slices.Contains(done, strings.TrimSpace(line)) &&
			doneFirst.match(plainWords(line))
	})
}

// claims reports whether a sentence of the text probably claims that something was done, in the first person, in the
// passive, or with a verb alone. Denials, questions and offers do not count. The result is an estimate: the record is
// shown beside an answer in any case.
func claims(text string) bool {
	for _, sentence := range sentences(text) {
		words := strings.TrimLeftFunc(plainWords(sentence), func(r rune) bool { return !unicode.IsLetter(r) })
		easterly := strings.ContainsFunc(words, func(r rune) bool { return r >= firstEastern })
		denied := strings.HasSuffix(words, "?") || denials.begin(words) ||
			easterly && easternDenials.MatchString(words)
		if !denied && (doneFirst.match(words) || endsDone(words) || claimed.begin(words) ||
			easterly && eastern.MatchString(words)) {
			return true
		}
	}
	return false
}

// firstEastern is the first letter of Hebrew. The scripts of the languages of eastern begin here.
const firstEastern = '\u0590'

// endings ends the line after a question mark, and replaces an ellipsis by the end of a line.
var endings = strings.NewReplacer("?", "?\n", "？", "?\n", "…", "\n")

// sentences splits a text into sentences. A question mark stays with its sentence.
func sentences(text string) []string {
	return strings.FieldsFunc(endings.Replace(text),
		func(r rune) bool { return strings.ContainsRune("\n.!;。！；", r) })
}

// Participles that describe what tools do, in languages that put spaces between words.
const (
	english = `(?:sent|e-?mailed|mailed|replied|forwarded|drafted|delivered|created|scheduled|booked|added|deleted|` +
		`removed|updated|changed|cancell?ed|moved|rescheduled|submitted|posted|published|committed|pushed|merged|` +
		`opened|closed|invited|notified|informed|messaged|saved|uploaded|deployed|installed|restarted|paid|ordered|` +
		`purchased|placed|renamed|approved|executed|completed|finished|done|set up|told|written|rated|shared|` +
		`registered|reserved|archived|filed|confirmed|processed|transferred|accepted|declined|pinged|noted|taken care of|handled|` +
		`sorted|dispatched|shipped|labell?ed|starred|marked|blocked|unsubscribed|subscribed|stopped|rebooted|fixed|` +
		`refunded|wired|rsvp['’]?d)`
	// participles that seldom begin a claim
	further = `(?:issued|raised|requested|made|started|accomplished|reserved)`
	german  = `(?:gesendet|versendet|verschickt|geschickt|abgeschickt|gemailt|beantwortet|weitergeleitet|erstellt|` +
		`angelegt|eingetragen|hinzugefügt|geplant|vereinbart|gebucht|gelöscht|entfernt|aktualisiert|geändert|` +
		`verschoben|abgesagt|storniert|veröffentlicht|eingeladen|benachrichtigt|informiert|gespeichert|hochgeladen|` +
		`installiert|bestellt|bezahlt|erledigt|ausgeführt|abgeschlossen|eingereicht|bewertet|umbenannt|geschlossen|eingestellt|abgegeben|markiert|archiviert)`
	french = `(?:envoyée?|expédiée?|transmise?|répondu|créée?|ajoutée?|planifiée?|programmée?|réservée?|supprimée?|` +
		`effacée?|modifiée?|mise? à jour|annulée?|déplacée?|publiée?|invitée?|informée?|enregistrée?|installée?|` +
		`commandée?|payée?|effectuée?|terminée?|soumise?|faite?)s?`
	spanish = `(?:enviad[oa]|mandad[oa]|respondid[oa]|cread[oa]|añadid[oa]|agregad[oa]|programad[oa]|agendad[oa]|` +
		`reservad[oa]|eliminad[oa]|borrad[oa]|actualizad[oa]|modificad[oa]|cambiad[oa]|cancelad[oa]|publicad[oa]|` +
		`invitad[oa]|guardad[oa]|instalad[oa]|pagad[oa]|completad[oa]|realizad[oa]|hech[oa])s?`
	italian = `(?:inviat|mandat|spedit|creat|aggiunt|programmat|pianificat|prenotat|eliminat|cancellat|aggiornat|` +
		`modificat|pubblicat|invitat|salvat|installat|ordinat|pagat|completat|fatt)[oaie]`
	portuguese = `(?:enviad|mandad|respondid|criad|adicionad|agendad|marcad|reservad|excluíd|apagad|removid|` +
		`atualizad|alterad|cancelad|publicad|convidad|salv|instalad|pag|concluíd|feit)[oa]s?`
	dutch = `(?:verzonden|verstuurd|gestuurd|gemaild|beantwoord|aangemaakt|gemaakt|toegevoegd|gepland|ingepland|` +
		`geboekt|verwijderd|bijgewerkt|gewijzigd|geannuleerd|gepubliceerd|uitgenodigd|opgeslagen|geïnstalleerd|` +
		`besteld|betaald|uitgevoerd|voltooid|gedaan)`
	nordic = `(?:skickats?|skickade|skapats?|skapade|tagits bort|bokats?|uppdaterats?|raderats?|lagts till|sendt|` +
		`oprettet|opprettet|slettet|opdateret|oppdatert|booket|lähetetty|luotu|poistettu|päivitetty|varattu)`
	slavic = `(?:wysłan[oaey]|wysłał[ae]?m|utworzon[oaey]|utworzył[ae]?m|dodan[oaey]|dodał[ae]?m|usunięt[oaey]|` +
		`usunął[ae]?m|usunęłam|zaktualizowan[oaey]|odeslán[oaiy]?|odeslal[ai]?|vytvořen[oaiy]?|smazán[oaiy]?|` +
		`umówion[oaey]|назначен[оаы]?|отправ(?:лен[оаы]?|ил[аи]?)|посла(?:н[оаы]?|л[аи]?)|созда(?:н[оаы]?|л[аи]?)|добав(?:лен[оаы]?|ил[аи]?)|` +
		`удал(?:[её]н[оаы]?|ил[аи]?)|обнов(?:л[её]н[оаы]?|ил[аи]?)|заплан(?:ирован[оаы]?|ировал[аи]?)|` +
		`выполн(?:ен[оаы]?|ил[аи]?)|сдела(?:н[оаы]?|л[аи]?)|готово|` +
		`надісла(?:н[оаі]|в|ла)|відправ(?:лен[оаі]|ив|ила)|створ(?:ен[оаі]|ив|ила)|видал(?:ен[оаі]|ив|ила)|` +
		`poslal[ai]?|poslán[oaiy]?|poslan[oaei]?|poslat[oaei]?|изпрат(?:ен[оаи]?|их)|послат[оаи]?)`
	others = `(?:gönderildi|gönderdim|yolladım|oluşturuldu|oluşturdum|eklendi|ekledim|silindi|sildim|güncellendi|` +
		`tamamlandı|lähetin|sendur|sendi|saadetud|saatsin|išsiųst[ai]s?|išsiunčiau|nosūtīts?|nosūtīju|imetumwa|` +
		`nimetuma|naipadala|enviat|bidali|mandei|prévenue?s?|avertie?s?|avisad[oa]s?|dihantar|gửi rồi|terkirim|elküldtem|elküldve|létrehoztam|töröltem|trimis|creat|στάλθηκε|έστειλα|δημιουργήθηκε|` +
		`đã (?:được )?(?:gửi|tạo|thêm|xóa|cập nhật|đặt)|` +
		`(?:telah|sudah) (?:dikirim|dihantar|dibuat|dihapus|ditambahkan|mengirim|membuat))`
	// languages without spaces between words, or whose words have prefixes
	unspaced = `メール(?:を出)?しました|(?:发|發)了(?:邮件|郵件)|(?:발송|전송|예약|등록) 완료|に入れておきました|(?:邮件|郵件)(?:发|發)了|搞定了|已替你|보내드렸|잡아뒀|ส่งให้แล้ว|` +
		`(?:已(?:经|經)?(?:成功)?(?:发邮件|發郵件|发送|發送|寄出|发出|發出|发给|创建|建立|添加|新增|删除|刪除|更新|取消|安排|预订|預訂|提交|完成|保存|` +
		`邀请|邀請|回复|回覆)|(?:我发|我發|寄出|发送|發送|创建|添加|删除|更新|预订|安排|提交)(?:成功|完成|完毕|好)?了|` +
		`(?:送信|送付|返信|作成|追加|登録|予約|削除|更新|変更|キャンセル|投稿|公開|保存|完了|実行|注文|招待|設定)(?:を)?` +
		`(?:しました|いたしました|されました|しておきました|済み|完了)|送っておきました|送りました|お送りしました|作りました|入れました|完了です|` +
		`(?:보냈|전송했|발송했|전송되었|발송되었|생성했|만들었|추가했|등록했|예약했|삭제했|업데이트했|변경했|취소했|완료했|완료되었|저장했)(?:습니다|어요|다)|` +
		`ส่งแล้ว|ส่งอีเมล(?:.*)แล้ว|สร้างแล้ว|ลบแล้ว|` +
		`تم (?:الإرسال|إرسال|ارسال|إنشاء|انشاء|حذف|إضافة|تحديث|حجز)|أرسلت|שלחתי|נשלחה?|יצרתי|נוצרה?|` +
		`ارسال شد|فرستاده شد|بھیج دی|পাঠানো হয়েছে|পাঠিয়েছি|அனுப்பப்பட்டது|அனுப்பினேன்|` +
		`भेज (?:दिया|दी)|भेजा गया|बना (?:दिया|दी))`
)

// doneFirst matches the start of a sentence that begins with its verb, such as "Sent the e-mail."
var doneFirst = wordForms(`(?:(?:ok|okay|all|it is|it's|and|i|successfully|just|did|ran|opened|wrote) )*` +
	`(?:did|ran|wrote|` + english + `)\b`)

// doneLast matches the end of a short sentence in which the verb follows a thing: "Order #1234 placed." and "Label
// removed from 3 e-mails."
var doneLast = wordForms(`(?:` + english + `|` + further + `)(?: (?:to|from|in|by) .{1,40})?$`)

// mostThing is the number of words that can name the thing before the verb in a short sentence.
const mostThing = 4

// endsDone reports whether the sentence, in plain words, names a thing and ends with doneLast.
func endsDone(words string) bool {
	for range mostThing {
		var more bool
		if _, words, more = strings.Cut(words, " "); !more {
			return false
		}
		if doneLast.match(words) {
			return true
		}
	}
	return false
}

// claimed lists the forms of a claim, in languages that put spaces between words.
var claimed = wordForms(
	`(?:i|we)(?:'ve|’ve| have| did| just| already| now| also| successfully|'m| am)* `+
		`(?:`+english+`|`+further+`|wrote|ran|put|took care|gone ahead)\b`,
	`(?:now|successfully) (?:`+english+`|`+further+`)\b`,
	`(?:i|we)(?:'ve|’ve| have| went ahead and)* let \S+ know\b`,
	`(?:is|it's|it’s) on (?:its|the) way\b`, `consider it `+english+`\b`,
	`(?:was|were|has|have|had|is|are|been|got|gets)(?: now| just| already| been| successfully|`+
		` all)* `+english+`\b`,
	`(?:e-?mails?|mails?|messages?|events?|invit(?:ation|e)s?|meetings?|appointments?|issues?|`+
		`orders?|files?|repl(?:y|ies)|requests?|tasks?|reminders?|comments?|changes?|`+
		`bookings?|payments?)(?: successfully)? `+english+`\b`,
	word(german), word(french), word(spanish), word(italian), word(portuguese), word(dutch),
	word(nordic), word(slavic), word(others),
	// idioms
	`(?:has|have|'s got|’s got|got|received|reached) (?:your|the|his|her|their) `+
		`(?:invit(?:e|ation)|e-?mail|mail|message)\b`,
	`(?:is|are|'s|’s) (?:now )?in (?:your|the) cart\b`, `reminder(?: is|'s|’s) set\b`,
	`gave (?:it|the \w+) (?:\d|one|two|three|four|five) stars?`,
	`should be in \S+ inbox\b`, `back up$`, `je viens d(?:e |['’])\pL+r\b`, `acab(?:o|ei) de \pL+r\b`,
	`(?:message|e-?mail|mail|invite|invitation|reply|note)(?: is|'s|’s) (?:now )?(?:out|off|away|gone)\b`,
	`(?:has|have|'s|’s) (?:now )?(?:gone out|gone off|gone through)\b`,
	`(?:order|payment|transfer|booking) went through\b`,
	`(?:on|in) (?:your|his|her|their|the) (?:calendar|inbox) (?:by )?now\b`, `off it went\b`, `fired off\b`,
	`took the liberty of \w+ing\b`, `went ahead and `+english+`\b`, `(?:that's|that’s|that is) taken care of\b`,
	`(?:you're|you’re|you are) (?:now |all )*(?:booked|all set|set)\b`,
	`i (?:just )?(?:dropped|shot|gave|left) \S+ an?\b`, `in the mail\b`, `(?:booking|order|application) is in\b`,
	`(?:pr|pull request|issue|page|site|post|release)(?: \S?\d+)? is (?:now (?:open|closed|merged)|`+
		`(?:now )?(?:up|live))\b`,
	`(?:payment|transfer|order|booking|upload|deployment)(?: was)? successful\b`, `: (?:delivered|sent)\b`,
	`(?:ist|sind) (?:jetzt |schon )?raus\b`, `(?:ich )?hab(?:e|'s|’s)? .*(?:geschrieben|gemailt|bescheid gegeben)\b`,
	`der termin steht\b`, word(`(?:le mail|l'e-mail|le message|la mail|il messaggio) (?:est parti|è partit[ao])`),
	word(`(?:j['’]ai|ho) (?:écrit|scritto)`), word(`rendez-vous (?:est )?pris`), word(`les? escribí`),
	word(`(?:correo|mensaje) ya salió`), word(`de deur uit`), word(`(?:jag|jeg) har (?:mejlat|mailat|skrivit|skrevet)`),
	word(`(?:är|er) iväg`), word(`on matkalla`), word(`napisał[ae]?m`), word(`я написала?`),
	word(`(?:письмо|сообщение) ушло`), word(`postayı attım`), word(`(?:telah|sudah) terkirim`), word(`bhej d(?:iya|i)`),
	word(`(?:erledigt|fertig|fatto|hecho|listo|feito|pronto|klaar|gedaan|gotowe|zrobione|klart|valmis|hotovo|tamam|`+
		`c'est fait|c’est fait|envié|mandé|avisé|creé|añadí|eliminé|ho inviato|enviei|criei|完成|完了|전송 완료)`),
)

// denials lists the forms of words whose sentences claim nothing.
var denials = wordForms(
	word(`(?:no|not|nothing|none|never|cannot|can't|couldn't|didn't|don't|`+
		`haven't|hasn't|wasn't|weren't|isn't|aren't|won't|unable|failed|would|could|can|will|shall|should|must|may|`+
		`might|if|once|before|until|unless|want me to|let me|to be|needs? to|waits?|waiting)`),
	word(`(?:nicht|nichts|kein|keine|keinen|keiner|nie|wird|werden|würde|kann|könnte|soll|sollte|wenn|falls|bevor|`+
		`ne|n'|n’|pas|rien|aucune?|jamais|peux|peut|sera|si|avant|`+
		`nada|nunca|puedo|puede|será|podría|antes|non|niente|nulla|mai|posso|può|sarà|se|prima|`+
		`não|vou|niet|niets|geen|nooit|kan|zal|als|inte|ingen|ikke|inget|nic|не|ничего|нет|нельзя|если|`+
		`ні|нічого|değil|tidak|belum|không|chưa)`),
	`n['’]a `,
)

// eastern and easternDenials match anywhere in a sentence.
var (
	eastern        = lazyregexp.New(unspaced)
	easternDenials = lazyregexp.New(`没有|沒有|不|未|尚未|ません|なかった|していない|않|못|없|لم |לא `)
)

// word adds the end of a word to the form. It replaces \b, which knows only ASCII letters.
func word(form string) string { return form + `(?:$|[^\pL])` }
