package main

import (
	"strconv"
	"strings"
	"time"

	"tidemark/cmd/internal/cli"
)

// javaDate is a form of times in the letters of Java's SimpleDateFormat, taken apart. Of the letters, those for years,
// months, days, hours, minutes, seconds and zones are known; names are English.
type javaDate []datePiece

// datePiece is a letter so many times, or text when the letter is 0.
type datePiece struct {
	letter byte
	n      int
	text   string
}

// dateLetters are all that SimpleDateFormat knows; it refuses others.
const dateLetters = "GyMdkHmsSEDFwWahKzZYuXL"

// parseJavaDate takes a pattern apart. Errors: the Failure of a letter that is not known, or of a quote without end.
func parseJavaDate(pattern string) (javaDate, error) {
	var all javaDate
	for i := 0; i < len(pattern); {
		c := pattern[i]
		switch {
		case c == '\'':
			end := strings.IndexByte(pattern[i+1:], '\'')
			if end < 0 {
				return nil, cli.BadArgument("Unterminated quote")
			}
			text := pattern[i+1 : i+1+end]
			if end == 0 {
				text = "'"
			}
			all = append(all, datePiece{text: text})
			i += end + 2
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			if !strings.ContainsRune(dateLetters, rune(c)) {
				return nil, cli.BadArgument("Illegal pattern character '%c'", c)
			}
			n := len(pattern[i:]) - len(strings.TrimLeft(pattern[i:], string(c)))
			all = append(all, datePiece{letter: c, n: n})
			i += n
		default:
			all = append(all, datePiece{text: string(c)})
			i++
		}
	}
	return all, nil
}

// text is a time, in ms since 1970, in the form, in the zone of this machine.
func (d javaDate) text(ms int64) string {
	at := time.UnixMilli(ms)
	var out strings.Builder
	for _, p := range d {
		out.WriteString(p.of(at))
	}
	return out.String()
}

func (p datePiece) of(at time.Time) string {
	padded := func(v int) string {
		text := strconv.Itoa(v)
		return strings.Repeat("0", max(0, p.n-len(text))) + text
	}
	switch p.letter {
	case 0:
		return p.text
	case 'G':
		return "AD"
	case 'y', 'Y', 'u':
		return p.year(at, padded)
	case 'M', 'L':
		return p.month(at, padded)
	case 'd':
		return padded(at.Day())
	case 'D':
		return padded(at.YearDay())
	case 'E':
		return at.Weekday().String()[:max(3, min(len(at.Weekday().String()), 10*(p.n/4)))]
	case 'a':
		return at.Format("PM")
	case 'm':
		return padded(at.Minute())
	case 's':
		return padded(at.Second())
	case 'S':
		return padded(at.Nanosecond() / 1e6)
	case 'z':
		return at.Format("MST")
	case 'Z':
		return at.Format("-0700")
	case 'X':
		return at.Format([]string{"Z07", "Z0700", "Z07:00"}[min(p.n, 3)-1])
	}
	return p.hourOrWeek(at, padded)
}

func (p datePiece) year(at time.Time, padded func(int) string) string {
	switch {
	case p.letter == 'u':
		return padded((int(at.Weekday())+6)%7 + 1) // the day of the week, Monday is 1
	case p.n == 2:
		return padded(at.Year() % 100)
	}
	return padded(at.Year())
}

func (p datePiece) month(at time.Time, padded func(int) string) string {
	switch {
	case p.n > 3:
		return at.Month().String()
	case p.n == 3:
		return at.Format("Jan")
	}
	return padded(int(at.Month()))
}

func (p datePiece) hourOrWeek(at time.Time, padded func(int) string) string {
	switch p.letter {
	case 'H':
		return padded(at.Hour())
	case 'k':
		return padded((at.Hour()+23)%24 + 1)
	case 'K':
		return padded(at.Hour() % 12)
	case 'h':
		return padded((at.Hour()+11)%12 + 1)
	case 'F':
		return padded((at.Day()-1)/7 + 1)
	case 'W':
		first := at.AddDate(0, 0, 1-at.Day())
		return padded((at.Day()-1+int(first.Weekday()))/7 + 1)
	}
	first := time.Date(at.Year(), 1, 1, 0, 0, 0, 0, at.Location())
	return padded((at.YearDay()-1+int(first.Weekday()))/7 + 1) // 'w', weeks begin on Sunday
}
