// Package iframe writes the HTML that embeds a player in a page of another site, for oEmbed and the dashboard.
package iframe

import (
	"html"
	"strconv"
)

// Code is an <iframe> (HTML, section 4.8.5) of an embed page. The address is whole, the title any text; player is in
// CSS pixels. What is in the frame may begin by itself, play with a licence, and fill the screen.
func Code(address, title string, player Size) string {
	return `<iframe src="` + html.EscapeString(address) + `" width="` + strconv.Itoa(player.Width) +
		`" height="` + strconv.Itoa(player.Height) + `" title="` + html.EscapeString(title) + `" style="border: 0" ` +
		`allow="autoplay; encrypted-media; fullscreen; picture-in-picture" allowfullscreen></iframe>`
}
