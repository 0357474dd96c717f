package run

import (
	"strings"
	"testing"
)

func TestClaims(t *testing.T) {
	for _, text := range []string{
		"Sent “Green” to ken@example.org.",
		"I have sent the email to Ken.",
		"I've just emailed Ken.",
		"Done! Ihre E-Mail an Ken wurde gesendet.",
		"The event was created: https://www.google.com/calendar/event?eid=abc",
		"✅ **Email sent** to Ken",
		"Your meeting with Ana has been scheduled for Monday at 10.",
		"Event created.",
		"All set, I booked the room.",
		"Ken has been informed.",
		"- Opened issue #12 in acme/shop",
		"Ich habe die E-Mail an Ken verschickt.",
		"Der Termin wurde angelegt.",
		"J'ai envoyé le message à Ken.",
		"Fait : c’est envoyé à François.",
		"L'événement a été créé.",
		"He enviado el correo a Ken.",
		"Correo enviado.",
		"Ho inviato la mail a Ken.",
		"L'evento è stato creato.",
		"Enviei o e-mail. O evento foi criado.",
		"Ik heb de e-mail verzonden.",
		"Mejlet har skickats.",
		"Wysłałem wiadomość do Kena.",
		"Письмо отправлено.",
		"Всё отправлено, Иван.",
		"Я отправил письмо Кену.",
		"邮件已发送给 Ken。",
		"已經寄出郵件。",
		"メールを送信しました。",
		"完了しました。",
		"켄에게 이메일을 보냈습니다.",
		"E-posta gönderildi.",
		"Đã gửi email cho Ken.",
		"تم إرسال البريد.",
		"Email sudah dikirim.",
		"It's on its way to Ken.",
		"I went ahead and let Ken know.",
		"Consider it sent.",
		"Poslal jsem e-mail Kenovi.",
		"E-mail je poslan Kenu.",
		"Имейлът е изпратен.",
		"Е-порука је послата.",
		"E-kiri on saadetud.",
		"Laiškas išsiųstas.",
		"E-pasts nosūtīts.",
		"Tölvupósturinn var sendur.",
		"Lähetin viestin.",
		"S'ha enviat el correu.",
		"Barua pepe imetumwa kwa Ken.",
		"J'ai prévenu Ken.",
		"Ya le mandé el correo a Ken.",
		"已发邮件给Ken",
		"邮件我发了。",
		"送っておきました。",
		"ایمیل ارسال شد.",
		"ای میل بھیج دی گئی ہے۔",
		"ইমেল পাঠানো হয়েছে।",
		"மின்னஞ்சல் அனுப்பப்பட்டது.",
		"تم الإرسال",
		"Gửi rồi nhé",
		"Your email has gone out to Ken.",
		"The message is out.",
		"Off it went!",
		"I took the liberty of emailing Ken.",
		"Went ahead and booked it.",
		"That's taken care of.",
		"You're booked for Monday at 10.",
		"It's on your calendar now.",
		"I dropped Ken a line.",
		"Fired off the email to Ken.",
		"PR #12 is up.",
		"Issue #12 is now open.",
		"Invoice's in the mail.",
		"The order went through.",
		"Payment successful.",
		"Mail an Ken ist raus.",
		"Habe Ken geschrieben.",
		"Der Termin steht.",
		"Le mail est parti.",
		"J'ai écrit à Ken.",
		"Rendez-vous pris pour lundi.",
		"Ya le escribí a Ken.",
		"El correo ya salió.",
		"Ho scritto a Ken.",
		"La mail è partita.",
		"De mail is de deur uit.",
		"Mailet är iväg.",
		"Jag har mejlat Ken.",
		"Sähköposti on matkalla.",
		"Napisałem do Kena.",
		"Я написал Кену.",
		"Письмо ушло.",
		"E-postayı attım.",
		"メールを出しました。",
		"予定に入れておきました。",
		"邮件发了。",
		"搞定了。",
		"메일 보내드렸어요.",
		"일정 잡아뒀습니다.",
		"Email sudah terkirim.",
		"ส่งให้แล้วค่ะ",
		"Email ken ko bhej diya.",
		"All handled!",
		"I took care of it.",
		"Refund issued.",
		"Successfully dispatched to Ken.",
		"Order #1234 placed.",
		"Branch deleted.",
		"Label removed from 3 mails.",
		"Review requested from Ana.",
		"I starred the mail.",
		"I marked it as read.",
		"The mug is in your cart now.",
		"Your reminder's set for 9.",
		"Ken's got the invite.",
		"I gave it 5 stars.",
		"Je viens d'envoyer le mail à Ken.",
		"Acabo de enviar el correo a Ken.",
		"Bewertung abgegeben.",
		"刚刚给 Ken 发了邮件。",
		"ケンにメールしました。",
		"이메일 발송 완료",
		"Встреча назначена.",
		"Email terkirim.",
	} {
		if !claims(text) {
			t.Errorf("claims(%q) = false", text)
		}
	}
}

func TestClaimsNothing(t *testing.T) {
	for _, text := range []string{
		"Hello, Ana. What can I do for you?",
		"I can send the mail once you tell me the address.",
		"Nothing was sent.",
		"Nothing has been sent yet.",
		"The email is ready; shall I send it?",
		"According to the thread, Ken already wrote on Monday.",
		"Lunch is on your calendar at noon.",
		"Issue #12 is open.",
		"Here is a draft that you can send.",
		"Der Termin ist um zehn.",
		"Le train part à dix heures.",
		"メールがあります。",
		"还没有发送。",
		"I did not send it.",
		"Which Bob do you mean?",
		"Try one of these: put 2 blue mugs into the cart, remove the mug from my cart, email ana@example.com.",
		"Order pizza, book a table, fix the build, label the e-mails, or star one.",
		"The following are supported: sorting, marking, starring.",
		"Shall I send it now?",
		"The mail will be sent when you approve it.",
		"You have two meetings tomorrow: Lunch at noon and Retro at 3 pm.",
		"Ich kann die E-Mail nicht senden.",
		"Soll ich die E-Mail senden?",
		"Je n'ai rien envoyé.",
		"No he enviado nada.",
		"Письмо не отправлено.",
		"邮件没有发送。",
		"メールは送信していません。",
		"이메일을 보내지 않았습니다.",
		"Paris is the capital of France. 💡",
		"Добрый день, Иван.",
		"どういたしまして。",
	} {
		if claims(text) {
			t.Errorf("claims(%q) = true", text)
		}
	}
}

func TestClaimInServersForm(t *testing.T) {
	done := []string{"Sent “Green” to ken@example.org."}
	if imitates("Sent “Green” to ken@example.org.", done) || imitates("I sent your mail to Ken.", done) {
		t.Error("a true sentence counts as an imitation")
	}
	for _, text := range []string{"Sent “Red” to ken@example.org.",
		"All is well:\n- Sent “Green” to eve@example.org."} {
		if !imitates(text, done) {
			t.Errorf("%q does not count as an imitation", text)
		}
	}
}

// TestClaimWithVerbLast checks which short sentences with the verb behind a thing count as claims: one to four words
// name the thing, and at most forty characters say where from or where to.
func TestClaimWithVerbLast(t *testing.T) {
	for text, want := range map[string]bool{
		"order #1234 placed":                           true,
		"label removed from 3 e-mails":                 true,
		"the room for monday booked":                   true,
		"ana's e-mail from today archived":             true,
		"invoice 7 taken care of by the server":        true,
		"placed":                                       false, // doneFirst finds it
		"placed order":                                 false,
		"the big room for monday booked":               false,
		"order placed yesterday":                       false,
		"order placed from " + strings.Repeat("x", 40): true,
		"order placed from " + strings.Repeat("x", 41): false,
		"order replaced":                               false,
		"order placeda":                                false,
	} {
		if got := endsDone(text); got != want {
			t.Errorf("%q counts as a claim: %v; want %v", text, got, want)
		}
	}
}

// BenchmarkClaims looks for a claim in an answer of usual length that has none.
func BenchmarkClaims(b *testing.B) {
	text := strings.Repeat("The council meets every second Tuesday in the old town hall, beside the river. Its "+
		"members speak for two minutes each; the chair keeps a list.\n\n- Bus 4 stops at the door\n", 11)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if claims(text) {
			b.Fatal("it claims nothing")
		}
	}
}
