package taint

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// alphabets are those of generators of fancy text, from a to z. A character can mean one letter in one alphabet and
// another letter in the next one.
var alphabets = []string{
	"卂乃匚ᗪ乇千Ꮆ卄丨ﾌҜㄥ爪几ㄖ卩Ɋ尺丂ㄒㄩᐯ山乂ㄚ乙",
	"ᗩᗷᑕᗪᗴᖴᎶᕼᎥᒍᛕᒪᗰᑎᗝᑭᑫᖇᔕ丅ᑌᐯᗯ᙭ㄚ乙",
	"ꍏꌃꉓꀸꍟꎇꁅꃅꀤꀭꀘ꒒ꂵꈤꂦꉣꆰꋪꌗ꓄ꀎꃴꅏꊼꌩꁴ",
	"ꋬꃳꉔ꒯ꏂꊰꍌꁝ꒐꒻ꀘ꒒ꂵꋊꄲꉣꆰꋪꇙ꓄꒤꒦ꅐꉧꌦꁴ",
	"₳฿₵ĐɆ₣₲Ⱨłj₭Ⱡ₥₦Ø₱qⱤ₴₮Ʉv₩ӾɎⱫ",
	"ค๒ς๔єŦﻮђเןкɭ๓ภ๏קợгรՇยשฬאץչ",
	"ค๖¢໓ēfງhiวkl๓ຖ໐p๑rŞtนงຟxฯຊ",
	"คბcძєfგhίjкl๓ทõթqгรtยvพxყʑ",
	"ąҍçժҽƒցհìʝҟӀʍղօքզɾʂէմѵա×վՀ",
	"ǟɮƈɖɛʄɢɦɨʝӄʟʍռօքզʀֆȶʊʋաӼʏʐ",
	"αႦƈԃҽϝɠԋιʝƙʅɱɳσρϙɾʂƚυʋɯxყȥ",
	"ąცƈɖɛʄɠɧıʝƙƖɱŋơ℘զཞʂɬų۷ῳҳყʑ",
	"მჩეძპfცhἶქκlოῆõρგΓჰནυὗwჯყɀ",
	"ᏗᏰፈᎴᏋᎦᎶᏂᎥᏠᏦᏝᎷᏁᎧᎮᎤᏒᏕᏖᏬᏉᏇጀᎩፚ",
	"ᎪᏴᏟᎠᎬfᏀᎻᏆᎫᏦᏞᎷnᎾᏢqᏒᏚᎢuᏙᏔxᎩᏃ",
	"ᎪᏼᏟᎠᎡfᎶhᎥᎫᏦᏞᎷnᎾᏢqᏒᏚᎢuᏙᎳxᎽᏃ",
	"αв¢∂єƒgнιנкℓмησρqяѕтυνωχуz",
	"αβςδεφghιjκlμηορqгѕτυvωxγz",
	"дбcdёfgнїjкгѫйѳpфя$tцvшжчз",
	"λbcdσfgήijkᄂmпӨpqяƨƭцvщxύz",
	"สbcdეfgђiјkl๓ทoթqr$tยvwxyz",
	"აbcდეფგhიjკlმnოპqრსტუვwxყზ",
	"ძbცdეfგhijkლთnიpqrstuvwxყz",
	"ꪖ᥇ᥴᦔꫀᠻᧁꫝ꠸꠹ᛕꪶꪑꪀꪮρꪇ᥅ᦓꪻꪊꪜ᭙᥊ꪗɀ",
	"ɐqɔpǝɟƃɥᴉɾʞlɯuodbɹsʇnʌʍxʎz", // upside down
	"אbcdefgהijkןmחסקqrsטuטשאעz",
	"աբcդեfգհիյկլմնօպքրստuvwxyզ",
	"աեcժէfցհիյkլmոօpզրsէսվաxყz",
	"⠁⠃⠉⠙⠑⠋⠛⠓⠊⠚⠅⠇⠍⠝⠕⠏⠟⠗⠎⠞⠥⠧⠺⠭⠽⠵", // Braille
}

// leastOfAlphabet is the minimum number of different characters of an alphabet in a text that is written in it.
const leastOfAlphabet = 4

// inAlphabets maps each character that is not an ASCII letter to the alphabets that contain it, as bits.
var inAlphabets = sync.OnceValue(func() map[rune]uint64 {
	of := map[rune]uint64{}
	for i, letters := range lettersOfAlphabets() {
		for r := range letters {
			if r >= utf8.RuneSelf {
				of[r] |= 1 << i
			}
		}
	}
	return of
})

// lettersOfAlphabets maps the characters of each alphabet to letters.
var lettersOfAlphabets = sync.OnceValue(func() (all []map[rune]rune) {
	for _, a := range alphabets {
		letters, next := map[rune]rune{}, 'a'
		for _, r := range a {
			if small := []rune(Normalize(string(r))); len(small) == 1 {
				r = small[0]
			}
			if _, known := letters[r]; !known { // two capitals can have the same small letter
				letters[r] = next
			}
			next++
		}
		all = append(all, letters)
	}
	return all
})

// inLatin returns the readings of a normalised text in the alphabets that it may be written in.
func inLatin(normal string) (all []string) {
	found, counts := map[rune]bool{}, make([]int, len(alphabets))
	for _, r := range normal {
		if r < utf8.RuneSelf || found[r] || inAlphabets()[r] == 0 {
			continue
		}
		found[r] = true
		for i := range counts {
			counts[i] += int(inAlphabets()[r] >> i & 1)
		}
	}
	for i, n := range counts {
		if n >= leastOfAlphabet {
			letters := lettersOfAlphabets()[i]
			all = append(all, strings.Map(func(r rune) rune {
				if l, known := letters[r]; known {
					return l
				}
				return r
			}, normal))
		}
	}
	return all
}
