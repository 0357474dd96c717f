package taint

import (
	"strings"
	"sync"
)

// lookAlikes lists characters that look like the lower-case letter or the digit at the beginning of their line. They
// come from confusables.txt 13.0.0 (Unicode Technical Standard 39, © 2020 Unicode, Inc.,
// unicode.org/terms_of_use.html). The list has those whose skeleton is one ASCII letter or digit and that NFKC does not
// change.
const lookAlikes = "2 ƨϩᒿꙅꛯꝛ\n" +
	"3 ʒȝзӡⳍꝫɜ\U000118ca\U00016f3b\U0001d206\n" +
	"4 ꮞ\U000118cf\n" +
	"5 ƽ\U000118db\n" +
	"6 бꮾⳓ\U000118d5\n" +
	"7 \U000104fa\U000118c6\U0001d212\n" +
	"8 ȣ৪੪\U0001031a\U0001e8cb\n" +
	"9 ৭੧୨൭ⳋꝯ\U000118cc\U000118d6\n" +
	"a ɑαаꭺᗅ⍺ꓮ\U000102a0\U00016f40\n" +
	"b ƅβвьꮟᏼᑲᖯᗷꓐꞵ\U00010282\U000102a1\U00010301\n" +
	"c ςσсꮯᴄⲥꓚ\U000102a2\U00010302\U0001043d\U0001051c\U000118e9\U000118f2\U0001f74c\n" +
	"d ԁꭰꮷᑯᗞᗪꓒꓓ\n" +
	"e εеҽꭼ℮⋿ⴹꓰꬲ\U00010286\U000118c6\U000118ce\n" +
	"f ϝքᖴẝꓝꞙꬵ\U00010287\U000102a5\U00010525\U000118c2\U0001d213\n" +
	"g ƍɡԍցꮐᏻᶃꓖ\n" +
	"h ηнһհꮋꮒᕼⲏꓧ\U000102cf\n" +
	"i ıɩɪιіӏꭵ⍳ꙇ\U000118c3\n" +
	"j ϳјꭻᒍꓙʝ\n" +
	"k κкꮶᛕⲕꓗ\U00010518\n" +
	"l ɩǀιіӏ\u05d5\u05df\u0627\u0661\u06f1\u07caꮮᒪᛁ∣⏽ⲓⳑⵏꓡꓲ│\U0001028a\U00010309\U00010320\U00010443\n" +
	"l \U00010526\U000118c3\U000118d2\U00016f16\U00016f28\U0001d22a\U0001e8c7\n" +
	"m μϻмꮇᗰᛖⲙꓟ\U000102b0\U00010311\n" +
	"n νոռⲛꓠ\U00010513\n" +
	"o οσоօ\u05e1\u0647\u0665\u06be\u06c1\u06d5\u06f5\u07c0०০੦૦ଠ୦௦౦೦ഠ൦๐໐ဝ၀ჿዐᴏᴑⲟⵔ〇ꓳꬽ\U00010292\U000102ab\n" +
	"o \U0001042c\U000104ea\U00010516\U000114d0\U000118d5\U000118c8\U000118d7\U000118e0\n" +
	"p ρрꮲᑭ⍴ⲣꓑ\U00010295\n" +
	"q ԛգզⵕ\n" +
	"r ʀгꭱꮢᖇᴦⲅꓣꭇꭈꮁ\U000104dc\U00016f35\U0001d216\n" +
	"s ƽѕտꮥꮪꓢꜱ\U00010296\U00010448\U000118c1\U00016f3a\n" +
	"t τтꭲ⊤⟙ⲧꓔ\U00010297\U000102b1\U00010315\U000118dc\U00016f0a\U0001f768\n" +
	"u ʋυսሀᑌᴜ∪⋃ꓴꞟꭎꭒ\U000104f6\U000118d8\U00016f42\n" +
	"v νѵ\u05d8\u0667\u06f7ꮩᐯᴠ∨⋁ⴸꓦꛟ\U0001051d\U00011706\U000118c0\U00016f08\U0001d20d\n" +
	"w ɯѡԝաꮃꮤᴡꓪ\U0001170a\U0001170e\U0001170f\U000118e6\U000118ef\n" +
	"x ×χхᕁᕽ᙭ᚷ╳⤫⤬⨯ⲭⵝꓫꭓ\U00010290\U000102b4\U00010317\U00010322\U00010527\U000118ec\n" +
	"y ɣʏυγуүყꭹꮍᶌỿⲩꓬꭚ\U000102b2\U000118c4\U000118dc\U00016f43\n" +
	"z ζꮓᴢꓜ\U000102f5\U000118c9\U000118c4\U000118e5"

// readAs lists additional characters that people read as the letter at the beginning of their line: letters with
// strokes and hooks, and letters of generators of fancy text.
const readAs = "a ɐɒ∂₳ค\n" +
	"b ƀɓЪъ฿\n" +
	"c ©¢ƈȼɕ₵\n" +
	"d đðɖɗ₫\n" +
	"e €əɘǝɛɇɜэєз∃∑ξ乇\n" +
	"f ƒ₣\n" +
	"g ɠǥ₲\n" +
	"h ħɦ♄\n" +
	"i ɨї\n" +
	"j ɉנ\n" +
	"k ƙ₭ĸ\n" +
	"l łɫɭƚℓ£ן\n" +
	"m ɱ₥๓\n" +
	"n ŋƞɲɳипηπח₦ก\n" +
	"o ø°º○◯◎●⬤⊙⊚∅⭕☉✪ө๏ס\n" +
	"p ƥþ₱ק\n" +
	"q ʠ\n" +
	"r ɍɽ®яร\n" +
	"s ʂȿ§∫₴ร\n" +
	"t ŧƫƭʈ†⊥₮ț\n" +
	"u ʉɥц\n" +
	"v ʌ√ש\n" +
	"w ωшщ₩ฬ\n" +
	"x ✕✖\n" +
	"y ƴɏч¥\n" +
	"z ƶȥʐ"

// smallCapitals are letters in the order of the alphabet that their names call small capitals. They look like capitals.
const smallCapitals = "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡ×ʏᴢ"

// enclosed are the first characters of alphabets in dark circles, dark squares, and of the letters of flags, whose NFKC
// is not the letter.
var enclosed = []rune{0x1f150, 0x1f170, 0x1f1e6}

// lookAlike maps each character of [lookAlikes], [readAs], [smallCapitals] and [enclosed] to its letter or digit.
var lookAlike = sync.OnceValue(func() map[rune]byte {
	of := map[rune]byte{'ǫ': 'q'}
	for i, r := range []rune(smallCapitals) {
		of[r] = byte('a' + i)
	}
	for _, first := range enclosed {
		for i := range rune(26) {
			of[first+i] = byte('a' + i)
		}
	}
	for line := range strings.Lines(lookAlikes + "\n" + readAs) {
		for _, r := range strings.TrimSpace(line[2:]) {
			if _, known := of[r]; !known {
				of[r] = line[0]
			}
		}
	}
	return of
})
