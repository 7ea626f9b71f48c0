#!/usr/bin/env node
// Checks how the built book looks: in each theme the contrast of all text (WCAG AA: 4.5, or 3 for large text), and at each width tables and
// pictures that are wider than the page, and numbers whose unit is on the next line.
//
//   npm install --no-save playwright-core     # and Chromium: CHROMIUM names the program [default: /usr/bin/chromium]
//   mdbook build docs && node scripts/check_book.mjs [--shots FOLDER] [PAGE...]
//
// --shots saves a picture of the beginning of each page in each theme and width.
import { mkdirSync, readdirSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const book = fileURLToPath(new URL('../target/book', import.meta.url));
const themes = ['light', 'rust', 'coal', 'navy', 'ayu'];
// On a narrow screen wide tables scroll.
const widths = [{ width: 1280, tables: true }, { width: 390, tables: false }];

function pages(folder) {
    return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) return pages(path);
        return entry.name.endsWith('.html') && !['print.html', '404.html', 'toc.html'].includes(entry.name) ? [path] : [];
    });
}

// Runs in the page. Returns a line for each kind of fault.
function faults({ tables }) {
    const numbers = colour => colour.match(/[\d.]+/g).map(Number);
    const over = (front, back) => {
        const alpha = front[3] ?? 1;
        return back.map((value, i) => front[i] * alpha + value * (1 - alpha));
    };
    const light = colour => {
        const [r, g, b] = colour.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = element => {
        const layers = [];
        for (; element; element = element.parentElement) layers.unshift(numbers(getComputedStyle(element).backgroundColor));
        return layers.reduce((back, front) => over(front, back), [255, 255, 255]);
    };
    const found = new Map();
    const add = (kind, value, text) => {
        if (!found.has(kind) || value < found.get(kind)[0]) found.set(kind, [value, text.trim().slice(0, 40)]);
    };
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
        const element = node.parentElement;
        const style = getComputedStyle(element);
        const hidden = style.visibility === 'hidden' || !element.getClientRects().length;
        if (!node.data.trim() || hidden || element.closest('script, style, .skip-to-main-content')) continue;
        const back = ground(element);
        const [a, b] = [light(over(numbers(style.color), back)), light(back)];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        if (contrast < (large ? 3 : 4.5)) {
            const place = element.closest('.sidebar') ? 'sidebar ' : '';
            add(`contrast of ${place}${element.tagName.toLowerCase()}.${element.className}`, contrast.toFixed(2), node.data);
        }
    }
    const main = document.querySelector('main');
    const right = main.getBoundingClientRect().right + 1;
    const scrolls = element => element !== main && (getComputedStyle(element).overflowX === 'auto' || scrolls(element.parentElement));
    for (const picture of main.querySelectorAll('img'))
        if (picture.getBoundingClientRect().right > right && !scrolls(picture)) add('wide picture', picture.width, picture.alt);
    if (tables)
        for (const table of main.querySelectorAll('table'))
            if (table.getBoundingClientRect().right > right) add(`wide table, ${table.offsetWidth}`, 0, table.innerText);
    if (document.documentElement.scrollWidth > innerWidth + 1) add('page wider than the screen', document.documentElement.scrollWidth, '');
    const prose = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
    for (let node = prose.nextNode(); node; node = prose.nextNode()) {
        if (node.parentElement.closest('code')) continue;
        for (const match of node.data.matchAll(/\d\s(ns|us|ms|s|%|[KMGT]i?B|[KMGT]B\/s)(?!\w)/g)) {
            const range = document.createRange();
            range.setStart(node, match.index);
            range.setEnd(node, match.index + match[0].length);
            const lines = new Set([...range.getClientRects()].map(line => Math.round(line.top)));
            if (lines.size > 1) add('unit on the next line', 0, node.data.slice(Math.max(0, match.index - 20), match.index + 6));
        }
    }
    return [...found].map(([kind, [value, text]]) => `${kind}${value ? `: ${value}` : ''}: ${text}`);
}

const args = process.argv.slice(2);
const shots = args[0] === '--shots' ? args.splice(0, 2)[1] : undefined;
const chosen = args.length ? args.map(page => resolve(book, page)) : pages(book);
if (shots) mkdirSync(shots, { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
let count = 0;
for (const theme of themes) {
    for (const size of widths) {
        const context = await browser.newContext({ viewport: { width: size.width, height: 1100 } });
        await context.addInitScript(name => localStorage.setItem('mdbook-theme', name), theme);
        context.setDefaultTimeout(120_000);
        const page = await context.newPage();
        for (const path of chosen) {
            await page.goto(`file://${path}`);
            for (const fault of await page.evaluate(faults, size)) {
                console.log(`${relative(book, path)}, ${theme}, ${size.width}: ${fault}`);
                count += 1;
            }
            if (shots) await page.screenshot({ path: join(shots, `${basename(path, '.html')}-${theme}-${size.width}.png`) });
        }
        await context.close();
    }
}
await browser.close();
console.log(`${chosen.length} pages, ${themes.length} themes: ${count} faults`);
process.exitCode = count ? 1 : 0;
